//! p2p-iommu-acs-hang: GPUs of one machine hang because the IOMMU or ACS blocks their direct P2P transfers.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "p2p-iommu-acs-hang",
        aliases: &[],
        summary: "GPUs of one machine hang because the IOMMU or ACS blocks their direct P2P transfers.",
        explanation: include_str!("p2p_iommu_acs_hang.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
