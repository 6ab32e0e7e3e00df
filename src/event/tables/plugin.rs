//! Rows of `plugin`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("plugin.placeholder", "placeholder of plugin", "", "", "", "")];
