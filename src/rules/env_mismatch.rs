//! env-mismatch: A setting that must be the same on all ranks differs.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "env-mismatch", aliases: &[], summary: "A setting that must be the same on all ranks differs.", explanation: include_str!("env_mismatch.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
