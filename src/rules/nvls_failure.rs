//! nvls-failure: NVLink SHARP or multi-node NVLink is there but does not work: Fabric Manager or IMEX.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "nvls-failure",
        aliases: &[],
        summary: "NVLink SHARP or multi-node NVLink is there but does not work: Fabric Manager or IMEX.",
        explanation: include_str!("nvls_failure.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
