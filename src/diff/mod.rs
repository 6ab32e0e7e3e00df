//! What changed between a run that worked and one that does not: two analyses, compared fact by fact and node by
//! node, ordered by how likely each difference explains the failure.

mod facts;
mod host;
mod weigh;
mod write;

pub use write::{Format, write};

use crate::job::Job;
use crate::rules::{Analysis, Severity, Verdict};
use facts::{Facts, Key};
use serde::Serialize;
use std::collections::BTreeSet;

/// Name of the JSON contract.
pub const SCHEMA: &str = "ncclog.diff/1";

/// JSON Schema (2020-12) of the JSON format.
pub const JSON_SCHEMA: &str = include_str!("diff.schema.json");

/// Most differences that are kept.
const MAX_DIFFERENCES: usize = 200;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A cause that only one of the runs shows.
    Finding,
    /// Library, driver.
    Version,
    /// A variable.
    Setting,
    /// The network that was chosen, and what with.
    Network,
    /// An interface.
    Interface,
    /// RDMA devices.
    Hca,
    /// GPU Direct RDMA.
    Gdr,
    /// What connects two ranks.
    Transport,
    /// Channel counts.
    Channels,
    /// Algorithms and protocols.
    Algorithm,
    /// GPUs.
    Gpu,
    /// The machine, as read-only commands showed it.
    Host,
    /// Size of the job.
    Size,
    /// How far the ranks came.
    Stage,
}

/// How likely a difference explains the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Look here first.
    Likely,
    /// It may be the reason, or follow from it.
    Possible,
    /// It hardly matters.
    Minor,
}

/// A value and the nodes that have it, by their place among the nodes of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Value {
    /// As printed.
    pub value: String,
    /// Places of the nodes, ascending; empty if it belongs to the whole job.
    pub nodes: Vec<usize>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is about.
    pub topic: Topic,
    /// Name of the fact: a variable, a cause, `driver`.
    pub name: String,
    /// What the good run says; empty if nothing.
    pub good: Vec<Value>,
    /// What the bad run says; empty if nothing.
    pub bad: Vec<Value>,
    /// How likely it explains the failure.
    pub weight: Weight,
    /// Why it may, in a clause.
    pub why: String,
    #[serde(skip)]
    score: u32,
}

/// One of the runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// What the user named.
    pub name: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// The cause that heads its report.
    pub headline: Option<String>,
    /// Distinct versions as printed.
    pub versions: Vec<String>,
    /// Size.
    pub nranks: Option<u32>,
    /// Nodes.
    pub nnodes: Option<u32>,
    /// Names of the nodes, by their place.
    pub nodes: Vec<String>,
}

/// The comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The run that worked.
    pub good: Side,
    /// The run that does not.
    pub bad: Side,
    /// Most telling first.
    pub differences: Vec<Difference>,
    /// Names of facts that are the same in both.
    pub same: Vec<String>,
    /// What limits the comparison.
    pub notes: Vec<String>,
}

impl Diff {
    /// Calls `change` for every text that comes from the logs.
    pub fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        for side in [&mut self.good, &mut self.bad] {
            side.headline.iter_mut().chain(&mut side.nodes).for_each(&mut *change);
        }
        for difference in &mut self.differences {
            change(&mut difference.why);
            difference.good.iter_mut().chain(&mut difference.bad).for_each(|v| change(&mut v.value));
        }
    }

    /// Something differs that may matter.
    pub fn matters(&self) -> bool {
        self.differences.iter().any(|d| d.weight <= Weight::Possible)
    }
}

/// Compares two runs; each with the name that the user gave it.
pub fn compare((good_name, good): (&str, &Analysis), (bad_name, bad): (&str, &Analysis)) -> Diff {
    let (before, after) = (facts::of(good), facts::of(bad));
    let by_node = good.job.hosts.len() == bad.job.hosts.len();
    let keys: BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let (mut differences, mut same) = (Vec::new(), Vec::new());
    for key in keys {
        let (a, b) = (values(&before, key, by_node), values(&after, key, by_node));
        // Commands were run beside one of the runs only: that is no change.
        let one_sided = key.0 == Topic::Host && (a.is_empty() || b.is_empty());
        if one_sided {
            continue;
        }
        if a == b {
            same.push(key.1.clone());
            continue;
        }
        differences.push(weigh::weigh(key, a, b, bad));
    }
    differences.sort_by(|x, y| (std::cmp::Reverse(x.score), x.topic, &x.name).cmp(&(std::cmp::Reverse(y.score), y.topic, &y.name)));
    let mut notes = notes(good, bad);
    if differences.len() > MAX_DIFFERENCES {
        notes.push(format!("{} more differences are left out.", differences.len() - MAX_DIFFERENCES));
        differences.truncate(MAX_DIFFERENCES);
    }
    Diff { good: side(good_name, good), bad: side(bad_name, bad), differences, same, notes }
}

/// A fact's values, the same value once with all its nodes. Runs of different size are compared as wholes.
fn values(facts: &Facts, key: &Key, by_node: bool) -> Vec<Value> {
    let mut list: Vec<Value> = Vec::new();
    for (value, nodes) in facts.get(key).into_iter().flatten() {
        list.push(Value { value: value.clone(), nodes: if by_node { nodes.iter().copied().collect() } else { Vec::new() } });
    }
    list
}

fn side(name: &str, analysis: &Analysis) -> Side {
    let Job { versions, nranks, nnodes, hosts, .. } = &analysis.job;
    Side {
        name: name.to_owned(),
        verdict: analysis.verdict,
        headline: analysis.findings.iter().find(|f| f.is_root()).map(|f| f.title.clone()),
        versions: versions.clone(),
        nranks: *nranks,
        nnodes: *nnodes,
        nodes: hosts.iter().map(|h| h.name.clone()).collect(),
    }
}

fn notes(good: &Analysis, bad: &Analysis) -> Vec<String> {
    let mut notes = Vec::new();
    if good.findings.iter().any(|f| f.is_root() && f.severity == Severity::Error) || good.verdict == Verdict::Failed {
        notes.push("The run that is given as good has errors of its own; are the two sides the right way round?".to_owned());
    }
    if bad.verdict == Verdict::Healthy {
        notes.push("Nothing is wrong in the logs of the run that is given as bad.".to_owned());
    }
    for (which, analysis) in [("good", good), ("bad", bad)] {
        let absent = analysis.job.absent_ranks().len();
        if absent > 0 && !analysis.job.ranks.is_empty() {
            let ranks = crate::report::plural(absent as u64, "rank");
            notes.push(format!("{ranks} of the {which} run {} no log; what they would show is not compared.", if absent == 1 { "has" } else { "have" }));
        }
    }
    if good.job.hosts.len() != bad.job.hosts.len() {
        notes.push("The runs have different numbers of nodes, so their facts are compared as wholes, not node by node.".to_owned());
    } else if good.job.hosts.iter().zip(&bad.job.hosts).any(|(a, b)| a.name != b.name) {
        notes.push("The runs used different machines; nodes are compared by their place, which follows the lowest rank.".to_owned());
    }
    let quiet = |a: &Analysis| !a.job.procs.iter().any(|p| p.nccl);
    if quiet(good) != quiet(bad) {
        notes.push("Only one of the runs has lines of NCCL; set NCCL_DEBUG=INFO in both to compare more.".to_owned());
    }
    notes
}
