//! nccl-too-old: The NCCL library is older than this GPU and does not know it.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "nccl-too-old", aliases: &[], summary: "The NCCL library is older than this GPU and does not know it.", explanation: include_str!("nccl_too_old.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
