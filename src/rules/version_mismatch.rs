//! version-mismatch: Ranks run different versions of the library.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "version-mismatch", aliases: &[], summary: "Ranks run different versions of the library.", explanation: include_str!("version_mismatch.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
