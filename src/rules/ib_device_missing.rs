//! ib-device-missing: RDMA is wanted but no device can be used.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "ib-device-missing", aliases: &[], summary: "RDMA is wanted but no device can be used.", explanation: include_str!("ib_device_missing.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
