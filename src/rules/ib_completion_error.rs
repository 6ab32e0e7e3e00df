//! ib-completion-error: An RDMA transfer failed for another reason than a peer that does not answer.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "ib-completion-error",
        aliases: &[],
        summary: "An RDMA transfer failed for another reason than a peer that does not answer.",
        explanation: include_str!("ib_completion_error.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
