//! Shorthand for the fixes that rules give.

use super::finding::{Finding, Fix};
use std::borrow::Cow;

/// A name from a log as one word of a shell: quoted if it holds anything that a shell would act on.
pub fn sh(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:=^/@%+".contains(c);
    if !name.is_empty() && name.chars().all(plain) { Cow::Borrowed(name) } else { Cow::Owned(format!("'{}'", name.replace('\'', r"'\''"))) }
}

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

#[cfg(test)]
mod tests {
    use super::sh;

    #[test]
    fn names_become_one_word() {
        for plain in ["mlx5_0:1", "=mlx5_0,mlx5_1", "^docker0", "fe80::1%eth0", "/dev/shm"] {
            assert_eq!(sh(plain), plain);
        }
        assert_eq!(sh("eth0;reboot"), "'eth0;reboot'");
        assert_eq!(sh("a'b"), r"'a'\''b'");
        assert_eq!(sh(""), "''");
    }
}
