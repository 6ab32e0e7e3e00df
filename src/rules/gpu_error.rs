//! gpu-error: A GPU failed: Xid, ECC, illegal memory access, a faulting kernel. NCCL is only the messenger.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "gpu-error",
        aliases: &[],
        summary: "A GPU failed: Xid, ECC, illegal memory access, a faulting kernel. NCCL is only the messenger.",
        explanation: include_str!("gpu_error.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
