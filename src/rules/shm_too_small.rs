//! shm-too-small: /dev/shm is too small for the shared memory segments of the ranks of one host.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "shm-too-small",
        aliases: &[],
        summary: "/dev/shm is too small for the shared memory segments of the ranks of one host.",
        explanation: include_str!("shm_too_small.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
