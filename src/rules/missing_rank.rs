//! missing-rank: One or more ranks never came, or stopped before the others.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "missing-rank", aliases: &[], summary: "One or more ranks never came, or stopped before the others.", explanation: include_str!("missing_rank.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
