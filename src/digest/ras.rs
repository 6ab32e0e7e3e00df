//! Reads the report of `ncclras`: what a line means depends on the headings before it.

use super::{Field, Sample};
use std::collections::BTreeMap;

/// Operation counts told apart per function of one communicator.
const MAX_COUNTS: usize = 64;
/// Ranks kept of each count.
const MAX_RANKS: usize = 8;

/// A fact to be kept: kind, key, record with its fields.
pub type Fact = (&'static str, String, Sample);

/// Where in a report the stream is.
#[derive(Debug, Default, Clone)]
pub struct Report {
    comm: String,
    /// `missing`, `dead`, `counts`, `status`; empty elsewhere.
    section: &'static str,
    function: String,
    /// Operation of the largest group of ranks, and of the last group.
    most: Option<String>,
    group: String,
    /// Inside a JSON report.
    json: bool,
    /// Fields of the JSON rank that is being read.
    rank: Vec<Field>,
    /// Function → operations → number of ranks and the first of them.
    counts: BTreeMap<String, BTreeMap<u64, (u64, Vec<Sample>)>>,
}

impl Report {
    /// Takes in a record of kind `ras.…`; returns what is to be kept of it.
    pub fn see(&mut self, kind: &'static str, mut sample: Sample) -> Vec<Fact> {
        if kind == "ras.json" {
            return self.json(sample);
        }
        let field = |name: &str| sample.get(name).map(str::to_owned);
        let mut kind = kind;
        match kind {
            "ras.comm" => {
                self.comm = field("comm").unwrap_or_default();
                self.section = "";
            }
            "ras.missing_count" => self.section = "missing",
            "ras.dead_count" => self.section = "dead",
            "ras.status" => self.section = "status",
            "ras.counts" => {
                (self.section, self.most) = ("counts", None);
                self.function = field("function").unwrap_or_default();
            }
            "ras.group_at" => {
                self.group = field("op").unwrap_or_else(|| "0".to_owned());
                self.most.get_or_insert_with(|| self.group.clone());
            }
            // Ranks listed under a group that is not the largest.
            "ras.rank" if self.section == "counts" && self.most.as_ref().is_some_and(|m| *m != self.group) => {
                kind = "ras.rank_at";
                sample.fields.push(("n".into(), self.group.clone()));
            }
            _ => {}
        }
        if kind == "ras.rank_at" {
            if sample.get("n").is_none() {
                sample.fields.push(("n".into(), "0".to_owned()));
            }
            sample.fields.push(("function".into(), self.function.clone()));
            sample.fields.push(("most".into(), self.most.clone().unwrap_or_default()));
        }
        vec![self.fact(kind, sample)]
    }

    fn fact(&self, kind: &'static str, mut sample: Sample) -> Fact {
        sample.fields.push(("section".into(), self.section.to_owned()));
        if sample.get("comm").is_none() {
            sample.fields.push(("comm".into(), self.comm.clone()));
        }
        let key = ["comm", "section", "function", "what", "rank", "host", "pid"].iter().filter_map(|n| sample.get(n)).collect::<Vec<_>>().join("|");
        (kind, key, sample)
    }

    fn json(&mut self, sample: Sample) -> Vec<Fact> {
        let Some((name, value)) = sample.fields.first().cloned() else { return Vec::new() };
        if name == "communicators" {
            *self = Self { json: true, ..Self::default() };
        }
        if !self.json {
            return Vec::new();
        }
        match name.as_ref() {
            "hash" => {
                let facts = self.flush();
                self.comm = value;
                return facts;
            }
            "end" => {
                self.json = false;
                return self.flush();
            }
            "rank" => self.rank = vec![(name, value)],
            "host" | "pid" => self.rank.push((name, value)),
            "dead" => {
                self.section = if value == "true" { "dead" } else { "missing" };
                return vec![self.fact("ras.rank", Sample { fields: self.rank.clone(), ..sample })];
            }
            "communicators" => {}
            function => {
                let counts = self.counts.entry(function.to_owned()).or_default();
                let n = value.parse().unwrap_or(0);
                if counts.len() < MAX_COUNTS || counts.contains_key(&n) {
                    let (ranks, first) = counts.entry(n).or_default();
                    *ranks += 1;
                    if first.len() < MAX_RANKS {
                        first.push(Sample { fields: self.rank.clone(), ..sample });
                    }
                }
            }
        }
        Vec::new()
    }

    /// The ranks of a communicator that have launched another number of operations than most.
    fn flush(&mut self) -> Vec<Fact> {
        self.section = "counts";
        let mut facts = Vec::new();
        for (function, counts) in std::mem::take(&mut self.counts) {
            let Some(most) = counts.iter().max_by_key(|(n, (ranks, _))| (*ranks, **n)).map(|(n, _)| *n) else { continue };
            for (n, (_, samples)) in counts.into_iter().filter(|(n, _)| *n != most) {
                for mut sample in samples {
                    let more = [("n", n.to_string()), ("function", function.clone()), ("most", most.to_string())];
                    sample.fields.extend(more.map(|(name, value)| (name.into(), value)));
                    facts.push(self.fact("ras.rank_at", sample));
                }
            }
        }
        facts
    }
}
