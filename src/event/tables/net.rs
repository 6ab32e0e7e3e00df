//! Rows of `net`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("net.placeholder", "placeholder of net", "", "", "", "")];
