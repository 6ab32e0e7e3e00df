//! driver-mismatch: The GPU driver does not fit the CUDA or ROCm version of the library.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "driver-mismatch",
        aliases: &[],
        summary: "The GPU driver does not fit the CUDA or ROCm version of the library.",
        explanation: include_str!("driver_mismatch.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
