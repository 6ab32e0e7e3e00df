//! stall: Ranks wait, and nothing in the logs says why.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "stall", aliases: &[], summary: "Ranks wait, and nothing in the logs says why.", explanation: include_str!("stall.md") },
    check,
    explains: &[],
    only_alone: true,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
