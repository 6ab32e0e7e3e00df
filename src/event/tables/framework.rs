//! Rows of `framework`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("framework.placeholder", "placeholder of framework", "", "", "", "")];
