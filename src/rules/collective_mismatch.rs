//! collective-mismatch: Ranks issued different operations, or one never issued the operation that the others wait in.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "collective-mismatch",
        aliases: &[],
        summary: "Ranks issued different operations, or one never issued the operation that the others wait in.",
        explanation: include_str!("collective_mismatch.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
