//! ib-port-error: A port of an HCA went down or changed while the job ran.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "ib-port-error", aliases: &[], summary: "A port of an HCA went down or changed while the job ran.", explanation: include_str!("ib_port_error.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
