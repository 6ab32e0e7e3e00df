//! amd-pcie-atomics: An AMD GPU sits in a slot without PCIe atomics, which the first collective needs.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "amd-pcie-atomics",
        aliases: &[],
        summary: "An AMD GPU sits in a slot without PCIe atomics, which the first collective needs.",
        explanation: include_str!("amd_pcie_atomics.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
