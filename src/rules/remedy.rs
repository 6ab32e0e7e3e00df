//! Shorthand for the fixes that rules give.

use super::finding::{Finding, Fix};

/// A fix: title, when to choose it, commands, what it needs, what it costs, how to take it back.
pub fn fix(title: &str, when: &str, commands: &[&str], needs: &str, cost: &str, undo: &str) -> Fix {
    Fix {
        title: title.to_owned(),
        when: when.to_owned(),
        commands: commands.iter().map(|c| (*c).to_owned()).collect(),
        needs: needs.to_owned(),
        cost: cost.to_owned(),
        undo: undo.to_owned(),
    }
}

/// Owned strings.
pub fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

/// Fills ranks, hosts and evidence of a finding from its hits.
pub fn prove(finding: &mut Finding, hits: &[super::query::Hit<'_>]) {
    finding.ranks = super::query::ranks_of(hits);
    finding.hosts = super::query::hosts_of(hits);
    finding.evidence = hits.iter().take(6).map(super::query::Hit::evidence).collect();
}
