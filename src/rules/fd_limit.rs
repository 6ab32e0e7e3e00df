//! fd-limit: The limit on open files is too low for the number of connections.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "fd-limit", aliases: &[], summary: "The limit on open files is too low for the number of connections.", explanation: include_str!("fd_limit.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
