//! memlock-limit: The limit on locked memory is too low for RDMA.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "memlock-limit", aliases: &[], summary: "The limit on locked memory is too low for RDMA.", explanation: include_str!("memlock_limit.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
