//! roce-qp-gid-mtu: RDMA was chosen, but its queue pairs cannot be connected or die: GID, MTU or link.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "roce-qp-gid-mtu",
        aliases: &[],
        summary: "RDMA was chosen, but its queue pairs cannot be connected or die: GID, MTU or link.",
        explanation: include_str!("roce_qp_gid_mtu.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
