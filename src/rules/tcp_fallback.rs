//! tcp-fallback: Nodes exchange data over TCP instead of RDMA.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "tcp-fallback", aliases: &[], summary: "Nodes exchange data over TCP instead of RDMA.", explanation: include_str!("tcp_fallback.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
