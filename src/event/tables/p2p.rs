//! Rows of `p2p`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("p2p.placeholder", "placeholder of p2p", "", "", "", "")];
