//! Rows of `socket`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("socket.placeholder", "placeholder of socket", "", "", "", "")];
