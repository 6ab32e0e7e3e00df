//! gdr-disabled: RDMA runs without GPU Direct although it was asked for or worked before.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "gdr-disabled",
        aliases: &[],
        summary: "RDMA runs without GPU Direct although it was asked for or worked before.",
        explanation: include_str!("gdr_disabled.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
