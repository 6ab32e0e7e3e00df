//! Rows of `bootstrap`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("bootstrap.placeholder", "placeholder of bootstrap", "", "", "", "")];
