//! app-crash: The program itself failed first; NCCL's errors follow from it.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "app-crash", aliases: &[], summary: "The program itself failed first; NCCL's errors follow from it.", explanation: include_str!("app_crash.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
