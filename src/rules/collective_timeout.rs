//! collective-timeout: A collective timed out, and nothing in the logs says why.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "collective-timeout",
        aliases: &[],
        summary: "A collective timed out, and nothing in the logs says why.",
        explanation: include_str!("collective_timeout.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
