//! rail-topology: Queue pairs fail only between rails that are not connected to each other.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "rail-topology",
        aliases: &[],
        summary: "Queue pairs fail only between rails that are not connected to each other.",
        explanation: include_str!("rail_topology.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
