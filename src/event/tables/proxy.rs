//! Rows of `proxy`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("proxy.placeholder", "placeholder of proxy", "", "", "", "")];
