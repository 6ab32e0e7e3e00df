//! gpu-oom: A GPU or the host ran out of memory on one rank; the others wait for it or lose it.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "gpu-oom",
        aliases: &[],
        summary: "A GPU or the host ran out of memory on one rank; the others wait for it or lose it.",
        explanation: include_str!("gpu_oom.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
