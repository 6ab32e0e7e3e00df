//! The status of a job that is being followed: how far which ranks are, in a few lines of at most 80 columns.

use super::{clean, plural, ranges, stage, verdict};
use crate::event::Stage;
use crate::rules::{Analysis, Severity};
use std::collections::BTreeMap;
use std::time::Duration;

/// Most stages and most findings shown; what is left is counted.
const MOST_STAGES: usize = 8;
const MOST_FINDINGS: usize = 4;

/// What one look saw.
#[derive(Debug, Clone)]
pub struct View {
    head: String,
    /// Stage, ranks, and the streams of those ranks.
    stages: Vec<(&'static str, Vec<u32>, Vec<u32>)>,
    absent: Vec<u32>,
    findings: Vec<String>,
}

impl View {
    /// Keeps what the status needs.
    pub fn new(analysis: &Analysis) -> Self {
        let job = &analysis.job;
        let mut groups: BTreeMap<Stage, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for row in &job.ranks {
            let (ranks, streams) = groups.entry(row.stage).or_default();
            ranks.push(row.rank);
            streams.push(row.last.at.stream);
        }
        let total = job.nranks.map_or(String::new(), |n| format!(" of {n}"));
        let nodes = job.nnodes.map_or(String::new(), |n| format!(" on {}", plural(u64::from(n), "node")));
        let net = if job.nets.is_empty() { String::new() } else { format!(", network {}", clean(&job.nets.join("+"))) };
        let head = format!("{}  {}{total} ranks seen{nodes}{net}", verdict(analysis.verdict), job.ranks.len());
        let findings = analysis.findings.iter().filter(|f| f.severity != Severity::Info && f.caused_by.is_none());
        Self {
            head,
            stages: groups.into_iter().map(|(s, (ranks, streams))| (stage(s, &job.versions), ranks, streams)).collect(),
            absent: job.absent_ranks(),
            findings: findings.map(|f| format!("{} {}: {}", if f.severity == Severity::Error { "error" } else { "warning" }, f.id, clean(&f.title))).collect(),
        }
    }
}

/// The lines of the status. `silences` tells how long each stream has been silent.
pub fn block(view: &View, elapsed: Duration, silences: &[Duration]) -> Vec<String> {
    let mut out = vec![format!("{}  {}", time(elapsed), view.head)];
    for (name, ranks, streams) in view.stages.iter().take(MOST_STAGES) {
        let silence = streams.iter().filter_map(|s| silences.get(*s as usize)).min().map_or(String::new(), |s| format!("last line {} ago", time(*s)));
        out.push(format!("  {name:<30} {:>5}  {:<18} {silence}", ranks.len(), ranges(ranks, Some(18))));
    }
    if view.stages.len() > MOST_STAGES {
        out.push(format!("  {} more stages", view.stages.len() - MOST_STAGES));
    }
    if !view.absent.is_empty() {
        out.push(format!("  {:<30} {:>5}  {}", "no log yet", view.absent.len(), ranges(&view.absent, Some(18))));
    }
    out.extend(view.findings.iter().take(MOST_FINDINGS).map(|f| format!("  {f}")));
    if view.findings.len() > MOST_FINDINGS {
        out.push(format!("  {} more", plural((view.findings.len() - MOST_FINDINGS) as u64, "finding")));
    }
    out
}

/// `7 s`, `3:05`, `2:03:05`.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    #[test]
    fn stages_absent_ranks_and_findings() {
        let text = |rank: u32, end: &str| {
            let head = format!("node1:{}:{} [{rank}] NCCL INFO", 100 + rank, 200 + rank);
            format!(
                "{head} NCCL version 2.21.5+cuda12.4\n{head} Using network IB\n{head} comm 0x{rank}a rank {rank} nranks 4 cudaDev {rank} nvmlDev {rank} busId {rank}000 commId 0x77 - Init {end}\n"
            )
        };
        let analysis = analyze_texts(&[("a", &text(0, "COMPLETE")), ("b", &text(1, "COMPLETE")), ("c", &text(2, "START"))]);
        let lines = block(&View::new(&analysis), Duration::from_secs(185), &[Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(70)]);
        assert!(lines[0].starts_with("3:05") && lines[0].contains("3 of 4 ranks seen"), "{lines:?}");
        assert!(lines[1].contains("Init START") && lines[1].contains("1:10 ago"), "{lines:?}");
        assert!(lines[2].contains("Init COMPLETE") && lines[2].contains("0,1") | lines[2].contains("0-1") && lines[2].contains("1 s ago"), "{lines:?}");
        assert!(lines[3].contains("no log yet") && lines[3].contains('3'), "{lines:?}");
        assert!(lines[..4].iter().all(|l| l.len() <= 80), "{lines:?}");
    }
}
