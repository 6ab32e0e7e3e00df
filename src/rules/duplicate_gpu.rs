//! duplicate-gpu: Two ranks use the same GPU.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "duplicate-gpu", aliases: &[], summary: "Two ranks use the same GPU.", explanation: include_str!("duplicate_gpu.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
