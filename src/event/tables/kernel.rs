//! Rows of `kernel`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("kernel.placeholder", "placeholder of kernel", "", "", "", "")];
