//! Rows of `rocm`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("rocm.placeholder", "placeholder of rocm", "", "", "", "")];
