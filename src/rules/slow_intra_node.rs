//! slow-intra-node: GPUs of one machine exchange data through shared memory or the network instead of P2P.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "slow-intra-node",
        aliases: &[],
        summary: "GPUs of one machine exchange data through shared memory or the network instead of P2P.",
        explanation: include_str!("slow_intra_node.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
