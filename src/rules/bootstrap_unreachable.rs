//! bootstrap-unreachable: Ranks cannot reach each other over TCP to start.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "bootstrap-unreachable", aliases: &[], summary: "Ranks cannot reach each other over TCP to start.", explanation: include_str!("bootstrap_unreachable.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
