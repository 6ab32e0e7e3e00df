//! launch-misconfig: The launch is wrong: a rank started twice, ranks that disagree on the size, two jobs on one id.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "launch-misconfig",
        aliases: &[],
        summary: "The launch is wrong: a rank started twice, ranks that disagree on the size, two jobs on one id.",
        explanation: include_str!("launch_misconfig.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
