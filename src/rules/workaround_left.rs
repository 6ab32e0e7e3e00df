//! workaround-left: A setting that once worked around a problem is still there.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "workaround-left", aliases: &[], summary: "A setting that once worked around a problem is still there.", explanation: include_str!("workaround_left.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
