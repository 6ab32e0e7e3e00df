//! Expectations: what a user says that a good start looks like, checked against what the logs show.
//!
//! Only what is expected is kept here; the rule `expectation-failed` compares it with the job.

mod file;
mod key;

pub use file::{parse, write};
pub use key::Key;

use std::collections::BTreeMap;

/// What is expected of the whole job, and of hosts that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectations {
    all: BTreeMap<Key, Vec<String>>,
    /// (pattern of host names, what is expected there), in the order of the file.
    hosts: Vec<(String, BTreeMap<Key, Vec<String>>)>,
}

impl Expectations {
    /// What is expected of all hosts, and of single ones.
    pub fn new(all: BTreeMap<Key, Vec<String>>, hosts: BTreeMap<String, BTreeMap<Key, Vec<String>>>) -> Self {
        Self { all, hosts: hosts.into_iter().collect() }
    }

    /// Nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.hosts.iter().all(|(_, of)| of.is_empty())
    }

    /// Takes `KEY=VALUE`; a later one replaces an earlier one of the same key, on all hosts. The error says what is wrong.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("{text}: an expectation is KEY=VALUE, as in net=IB"))?;
        let key: Key = name.trim().parse()?;
        let values: Vec<String> = value.split(',').map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()).collect();
        key.check(&values)?;
        for (_, of) in &mut self.hosts {
            of.remove(&key);
        }
        self.all.insert(key, values);
        Ok(())
    }

    /// Takes everything of `other` that is not set here.
    pub fn fill_from(&mut self, other: Self) {
        for (host, mut of) in other.hosts {
            of.retain(|key, _| !self.all.contains_key(key));
            self.hosts.push((host, of));
        }
        for (key, values) in other.all {
            self.all.entry(key).or_insert(values);
        }
    }

    /// The keys of which anything is expected.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.all.keys().chain(self.hosts.iter().flat_map(|(_, of)| of.keys())).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The values of `key` that are expected on `host`; empty if nothing is.
    pub fn on(&self, key: Key, host: &str) -> &[String] {
        let own = self.hosts.iter().find(|(pattern, of)| fits(pattern, host) && of.contains_key(&key)).and_then(|(_, of)| of.get(&key));
        own.or_else(|| self.all.get(&key)).map_or(&[], Vec::as_slice)
    }

    /// A number that is expected of the whole job.
    pub fn number(&self, key: Key) -> Option<u32> {
        self.all.get(&key)?.first()?.parse().ok()
    }
}

/// Whether `pattern` (with `*` and `?`) is `text`, case aside.
pub fn fits(pattern: &str, text: &str) -> bool {
    let lower = |s: &str| s.to_lowercase().chars().collect::<Vec<char>>();
    let (pattern, text) = (lower(pattern), lower(text));
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, t) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, yes) in [
            ("IB", "ib", true),
            ("2.27.*", "2.27.3+cuda12.9", true),
            ("2.27.*", "2.270.1", false),
            ("wlan*", "wlan0", true),
            ("*a*b", "xaxxb", true),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, text), yes, "{pattern} {text}");
        }
    }

    #[test]
    fn the_last_one_wins_and_hosts_may_differ() {
        let mut all = parse("[expect]\nhca = \"mlx5_0\"\nnranks = 2\n[expect.host.\"spark*\"]\nhca = \"rocep1s0f1\"\n").unwrap();
        assert_eq!(all.on(Key::Hca, "spark1"), ["rocep1s0f1"]);
        assert_eq!(all.on(Key::Hca, "node1"), ["mlx5_0"]);
        assert_eq!(all.number(Key::Nranks), Some(2));
        all.add("hca=mlx5_1,mlx5_2").unwrap();
        assert_eq!(all.on(Key::Hca, "spark1"), ["mlx5_1", "mlx5_2"]);
    }
}
