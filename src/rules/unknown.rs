//! Warnings that no row describes and no finding quotes: a new failure shows here first. Never an alarm by itself.

use super::finding::{Evidence, Finding};
use super::query::{Ask, Hit, evidence, hosts_of, ranks_of};
use crate::digest::Mark;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Equal warnings over all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownWarning {
    /// The message with numbers and addresses as `#`.
    pub template: String,
    /// How often.
    pub count: u64,
    /// How many processes printed it.
    pub processes: u64,
    /// The ranks that printed it, ascending, as far as they are known.
    pub ranks: Vec<u32>,
    /// Their hosts, in order of appearance.
    pub hosts: Vec<String>,
    /// The first of them.
    pub evidence: Evidence,
}

/// Groups them, most telling first: what few processes print before what all print, then by time.
pub fn group<'f>(ask: Ask<'_>, findings: impl Iterator<Item = &'f Finding>) -> Vec<UnknownWarning> {
    let quoted: BTreeSet<(&str, u64)> = findings.flat_map(|f| &f.evidence).map(|e| (e.file.as_str(), e.line)).collect();
    let is_quoted = |h: &Hit<'_>| {
        let samples = h.entry.samples.iter().chain([&h.entry.first, &h.entry.last]);
        samples.into_iter().any(|s| quoted.contains(&(ask.job.path(s.at.stream), s.at.line)))
    };
    let mut groups: BTreeMap<&str, Vec<Hit<'_>>> = BTreeMap::new();
    for hit in ask.hits("warn.unknown") {
        groups.entry(hit.entry.key.as_str()).or_default().push(hit);
    }
    groups.retain(|_, hits| !hits.iter().any(is_quoted));
    let mut list: Vec<(u64, Mark, UnknownWarning)> = groups.into_iter().filter_map(|(template, hits)| row(ask, template, &hits)).collect();
    list.sort_by_key(|(processes, at, _)| (*processes, at.time.is_none(), at.time, *at));
    list.into_iter().map(|(_, _, w)| w).collect()
}

fn row(ask: Ask<'_>, template: &str, hits: &[Hit<'_>]) -> Option<(u64, Mark, UnknownWarning)> {
    let first = hits.iter().min_by_key(|h| (h.at().time.is_none(), h.at().time, h.at()))?;
    let processes = hits.iter().map(|h| h.proc).collect::<BTreeSet<_>>().len() as u64;
    let warning = UnknownWarning {
        template: template.to_owned(),
        count: hits.iter().map(Hit::count).sum(),
        processes,
        ranks: ranks_of(hits),
        hosts: hosts_of(hits),
        evidence: evidence(ask.job, first.rank(), &first.entry.first),
    };
    Some((processes, first.at(), warning))
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    fn rank(n: u32, extra: &str) -> String {
        let head = format!("node1:{}:{} [{n}] NCCL", 4000 + n, 4100 + n);
        let comm = format!("comm 0x55d0{n}0 rank {n} nranks 3 cudaDev {n} busId {n}000 commId 0x1f");
        format!("{head} INFO {comm} - Init START\n{head} WARN frobnication of 0x7f{n}a failed on lane {n}\n{extra}{head} INFO {comm} - Init COMPLETE\n")
    }

    #[test]
    fn equal_warnings_group_and_rare_ones_come_first() {
        let odd = "node1:4001:4101 [1] NCCL WARN the flux valve of dev 3 is shut\n";
        let texts = [("a.log", rank(0, "")), ("b.log", rank(1, odd)), ("c.log", rank(2, ""))];
        let texts: Vec<(&str, &str)> = texts.iter().map(|(n, t)| (*n, t.as_str())).collect();
        let analysis = analyze_texts(&texts);
        let list: Vec<(&str, u64, &[u32])> = analysis.unknown.iter().map(|w| (w.template.as_str(), w.count, w.ranks.as_slice())).collect();
        assert_eq!(list, [("the flux valve of dev # is shut", 1, &[1][..]), ("frobnication of # failed on lane #", 3, &[0, 1, 2][..])]);
        assert_eq!(analysis.unknown[0].evidence.file, "b.log");
        assert!(analysis.findings.is_empty(), "no alarm: {:?}", analysis.findings);
    }

    #[test]
    fn a_known_warning_is_not_listed() {
        let line = "node1:4001:4101 [1] NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n";
        let analysis = analyze_texts(&[("b.log", line)]);
        assert!(analysis.unknown.is_empty(), "{:?}", analysis.unknown);
    }

    #[test]
    fn a_warning_broken_over_two_lines_is_one() {
        let line = "node1:4001:4101 [1] NCCL WARN Call to ibv_modify_qp failed with error\nConnection timed out errno 110\n";
        let analysis = analyze_texts(&[("b.log", line)]);
        assert!(analysis.unknown.is_empty(), "{:?}", analysis.unknown);
    }
}
