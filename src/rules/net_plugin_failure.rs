//! net-plugin-failure: The network plugin that was wanted does not work.

use super::finding::Finding;
use super::query::Ask;
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "net-plugin-failure", aliases: &[], summary: "The network plugin that was wanted does not work.", explanation: include_str!("net_plugin_failure.md") },
    check,
    explains: &[],
    only_alone: false,
};

fn check(_ask: Ask<'_>) -> Vec<Finding> {
    Vec::new()
}
