//! Rows of `framework`.

use crate::event::shape::{Shape, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[shape("framework.placeholder", "placeholder of framework", "", "", "", "")];

/// Kinds that prove a finished collective.
pub const PROOF_OF_COLLECTIVE: &[&str] = &[];
