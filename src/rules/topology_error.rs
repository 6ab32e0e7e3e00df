//! topology-error: The topology that the library was given, or found, does not work.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "topology-error",
        aliases: &[],
        summary: "The topology that the library was given, or found, does not work.",
        explanation: include_str!("topology_error.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
