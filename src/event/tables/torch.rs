//! Rows of `torch`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("torch.placeholder", "placeholder of torch", "", "", "", "")];
