//! gpu-arch-mismatch: The library was built without code for this GPU.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "gpu-arch-mismatch", aliases: &[], summary: "The library was built without code for this GPU.", explanation: include_str!("gpu_arch_mismatch.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
