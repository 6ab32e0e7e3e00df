//! amd-ipc-failed: An AMD GPU's memory could not be shared with its peer process.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "amd-ipc-failed", aliases: &[], summary: "An AMD GPU's memory could not be shared with its peer process.", explanation: include_str!("amd_ipc_failed.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
