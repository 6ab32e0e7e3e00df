//! gpu-not-visible: The process sees no GPU, or not the one that it asks for.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "gpu-not-visible", aliases: &[], summary: "The process sees no GPU, or not the one that it asks for.", explanation: include_str!("gpu_not_visible.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
