//! expectation-failed: The logs show something other than what was said to be expected.

mod facts;

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, ranks_text};
use super::remedy::{fix, lines, sh};
use super::{Cause, Rule};
use crate::expect::{Expectations, Key, fits};
use crate::job::{Job, Vantage};
use facts::Fact;
use std::collections::{BTreeMap, BTreeSet};

/// The rule. Its findings come from [`judge`]: without expectations there is nothing to find.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "expectation-failed",
        aliases: &[],
        summary: "The logs show something other than what was said to be expected.",
        explanation: include_str!("../expectation_failed.md"),
    },
    check: |_| Vec::new(),
    explains: &[],
    only_alone: false,
};

/// What became of the expectations.
#[derive(Debug, Default)]
pub struct Judgement {
    /// One finding for every expectation that is violated, with the causes that would explain it.
    pub findings: Vec<(Finding, &'static [&'static str])>,
    /// What the logs do not decide, with the setting that would.
    pub undecided: Vec<String>,
}

/// Compares the job with what is expected of it.
pub fn judge(ask: Ask<'_>, expected: &Expectations) -> Judgement {
    let mut out = Judgement::default();
    for key in expected.keys() {
        let facts = facts::of(ask, key);
        let wrong: Vec<&Fact> = facts.iter().filter(|f| violates(expected.on(key, &f.host), key, f)).collect();
        let early = matches!(ask.job.vantage, Vantage::Live { .. }) && too_few_yet(key, expected, &wrong);
        if facts.iter().all(|f| expected.on(key, &f.host).is_empty()) || early {
            let value = shown(expected.on(key, ""));
            let named = if value.is_empty() { key.name().to_owned() } else { format!("{}={value}", key.name()) };
            let now = if early { "the logs show fewer so far".to_owned() } else { format!("no line says it; {}", key.setting()) };
            out.undecided.push(format!("Expectation {named} is not decided: {now}."));
        } else if !wrong.is_empty() {
            out.findings.push((finding(key, expected, &wrong), causes(key)));
        }
    }
    out
}

/// While a job starts, its small communicators may come first.
fn too_few_yet(key: Key, expected: &Expectations, wrong: &[&Fact]) -> bool {
    let Some(want) = matches!(key, Key::Nranks | Key::Nnodes).then(|| expected.number(key)).flatten() else { return false };
    !wrong.is_empty() && wrong.iter().all(|f| f.value.parse::<u32>().is_ok_and(|n| n < want))
}

fn violates(wanted: &[String], key: Key, fact: &Fact) -> bool {
    let hit = |pattern: &String| {
        fits(pattern, &fact.value) || (key == Key::P2p && fits(&format!("{pattern}/*"), &fact.value)) || (key == Key::Version && same_version(pattern, &fact.value))
    };
    !wanted.is_empty() && wanted.iter().any(hit) == (key == Key::NoInterface)
}

/// `2.27.3` is `2.27.3+cuda12.9`, too.
fn same_version(pattern: &str, version: &str) -> bool {
    !pattern.contains('*') && version.strip_prefix(pattern).is_some_and(|rest| rest.starts_with(['+', '-']))
}

fn shown(values: &[String]) -> String {
    values.join(",")
}

fn finding(key: Key, expected: &Expectations, wrong: &[&Fact]) -> Finding {
    let values: BTreeSet<&str> = wrong.iter().map(|f| f.value.as_str()).collect();
    let values = values.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    let ranks: Vec<u32> = wrong.iter().filter_map(|f| f.rank).collect::<BTreeSet<_>>().into_iter().collect();
    let hosts: Vec<String> = wrong.iter().map(|f| f.host.clone()).filter(|h| !h.is_empty()).collect::<BTreeSet<_>>().into_iter().collect();
    let wanted = shown(expected.on(key, &wrong[0].host));
    let who = if ranks.is_empty() { String::new() } else { format!(" on {}", ranks_text(&ranks)) };
    let title = match key {
        Key::NoInterface => format!("expected that {wanted} is not used, but {values} is{who}"),
        _ => format!("expected {}={wanted}, but the log shows {values}{who}", key.name()),
    };
    let mut finding = Finding::new("expectation-failed", Severity::Error, Confidence::Certain, title);
    finding.why = format!("The start was to be held to {}={wanted} (--expect, or [expect] in ncclog.toml). {}", key.name(), meaning(key));
    finding.ranks = ranks;
    finding.hosts = hosts;
    finding.evidence = wrong.iter().filter_map(|f| f.evidence.clone()).take(6).collect();
    finding.fixes = vec![remedy(key, &wanted)];
    finding.avoid = lines(&["Starting the service all the same: what is wrong at the start stays wrong, and is slower to find under load."]);
    finding.verify = vec![format!("ncclog follow LOGS --until ready --expect {}", sh(&format!("{}={wanted}", key.name())))];
    finding
}

/// Causes whose consequence a violated expectation can be.
fn causes(key: Key) -> &'static [&'static str] {
    match key {
        Key::Net | Key::Hca | Key::Link => &["ib-device-missing", "tcp-fallback", "net-plugin-failure"],
        Key::Gdr => &["tcp-fallback", "gdr-disabled"],
        Key::P2p => &["slow-intra-node"],
        Key::Nranks | Key::Nnodes => &["launch-misconfig", "missing-rank"],
        Key::Version => &["version-mismatch"],
        Key::NoInterface => &["tcp-fallback", "bootstrap-unreachable"],
    }
}

/// Adds the findings, each under its cause where that was found.
pub fn add(findings: &mut Vec<Finding>, failed: Vec<(Finding, &'static [&'static str])>) {
    for (mut finding, causes) in failed {
        finding.caused_by = causes.iter().copied().find(|c| findings.iter().any(|f| f.id == *c && f.severity != Severity::Info));
        findings.push(finding);
    }
}

fn meaning(key: Key) -> &'static str {
    match key {
        Key::Nranks | Key::Nnodes => "Another number of processes or nodes takes part than was planned: the launcher's counts or the list of hosts differ.",
        Key::Version => "Another build of the library was loaded than was planned; mixed builds on several nodes do not work together.",
        Key::Net | Key::Hca | Key::Link => "Data between nodes takes another way than was planned; other findings may say why.",
        Key::Gdr => "Data between GPU and HCA goes through host memory, or does not although it should.",
        Key::P2p => "GPUs of one node reach each other in another way than was planned.",
        Key::NoInterface => "The interface is a bridge, a management network or a radio link by the user's word, and the library chose it.",
    }
}

fn remedy(key: Key, wanted: &str) -> super::Fix {
    let (title, command) = match key {
        Key::Nranks | Key::Nnodes => ("Compare the launcher's counts and hosts with the plan", "env | grep -E 'WORLD_SIZE|NNODES|SLURM_N|OMPI_COMM_WORLD_SIZE'".to_owned()),
        Key::Version => ("Find the library that was loaded", "python -c 'import torch; print(torch.cuda.nccl.version())'; ldconfig -p | grep nccl".to_owned()),
        Key::Net => ("Make the library refuse another network, so that it says why", format!("export NCCL_NET={} NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET", sh(wanted))),
        Key::Hca | Key::Link => (
            "Bind the devices by their exact names",
            format!("export NCCL_IB_HCA=={}   # names: ls /sys/class/infiniband", if key == Key::Hca { sh(wanted) } else { "DEVICE".into() }),
        ),
        Key::Gdr => ("See why GPU Direct was not chosen", "lsmod | grep peermem; nvidia-smi topo -m".to_owned()),
        Key::P2p => ("See how the GPUs are joined", "nvidia-smi topo -m; nvidia-smi topo -p2p rw".to_owned()),
        Key::NoInterface => ("Name the interface of the fabric", "export NCCL_SOCKET_IFNAME==INTERFACE   # names: ip -br addr".to_owned()),
    };
    fix(title, "", &[&command], "nothing", "a restart of the job", "unset the variables")
}

/// What the logs of a good run let expect of the next one: one value for every key on which the job agrees, and the
/// values of the hosts that differ.
pub fn expected(job: &Job) -> Expectations {
    let ask = Ask::new(job);
    let mut common = BTreeMap::new();
    let mut hosts: BTreeMap<String, BTreeMap<Key, Vec<String>>> = BTreeMap::new();
    for key in Key::ALL.into_iter().filter(|k| *k != Key::NoInterface) {
        let mut per_host: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for fact in facts::of(ask, key).into_iter().filter(|f| !f.absence) {
            per_host.entry(fact.host).or_default().insert(fact.value);
        }
        let distinct: BTreeSet<&BTreeSet<String>> = per_host.values().collect();
        if distinct.len() == 1 {
            common.insert(key, distinct.into_iter().flatten().cloned().collect());
        } else {
            for (host, values) in per_host.into_iter().filter(|(h, _)| !h.is_empty()) {
                hosts.entry(host).or_default().insert(key, values.into_iter().collect());
            }
        }
    }
    Expectations::new(common, hosts)
}
