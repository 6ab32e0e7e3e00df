//! Rows of `cuda`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("cuda.placeholder", "placeholder of cuda", "", "", "", "")];
