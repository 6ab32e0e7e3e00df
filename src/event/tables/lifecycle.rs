//! Rows of `lifecycle`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("lifecycle.placeholder", "placeholder of lifecycle", "", "", "", "")];
