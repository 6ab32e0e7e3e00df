//! fabric-split: The settings of one node point to different networks.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "fabric-split", aliases: &[], summary: "The settings of one node point to different networks.", explanation: include_str!("fabric_split.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
