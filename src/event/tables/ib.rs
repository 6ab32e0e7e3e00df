//! Rows of `ib`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("ib.placeholder", "placeholder of ib", "", "", "", "")];
