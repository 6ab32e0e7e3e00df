//! peer-crash: A rank died or left; the others lost their connection to it.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "peer-crash", aliases: &[], summary: "A rank died or left; the others lost their connection to it.", explanation: include_str!("peer_crash.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
