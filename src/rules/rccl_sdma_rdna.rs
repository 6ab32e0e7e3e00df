//! rccl-sdma-rdna: Several Radeon cards hang or fault under RCCL.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "rccl-sdma-rdna", aliases: &[], summary: "Several Radeon cards hang or fault under RCCL.", explanation: include_str!("rccl_sdma_rdna.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
