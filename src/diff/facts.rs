//! The facts of a run that are compared: topic and name → value → the nodes that have it.

use super::Topic;
use crate::event::Library;
use crate::job::{Job, Proc};
use crate::report::{plural, stage};
use crate::rules::{Analysis, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// Topic and name.
pub type Key = (Topic, String);

/// Values with the places of their nodes; no node means the whole job.
pub type Facts = BTreeMap<Key, BTreeMap<String, BTreeSet<usize>>>;

/// Facts that one field of a record tells: topic, name, kind, field.
const FIELDS: [(Topic, &str, &str, &str); 15] = [
    (Topic::Version, "CUDA driver", "init.driver", "version"),
    (Topic::Version, "ROCm", "rocm.version_extra", "rocm"),
    (Topic::Network, "network", "net.using", "net"),
    (Topic::Network, "net plugin", "net.plugin_assigned", "plugin"),
    (Topic::Interface, "bootstrap interface", "bootstrap.using", "iface"),
    (Topic::Channels, "collective channels", "init.channels", "coll"),
    (Topic::Channels, "NVLS channels", "init.channels", "nvls"),
    (Topic::Channels, "CollNet channels", "init.channels", "collnet"),
    (Topic::Channels, "P2P channels", "init.channels", "p2p"),
    (Topic::Algorithm, "algorithms and protocols", "tuning.matrix", "text"),
    (Topic::Algorithm, "thresholds", "init.tuned", "text"),
    (Topic::Gpu, "GPU model", "gpu.name", "name"),
    (Topic::Gpu, "GPU model", "rocm.gpu_name", "name"),
    (Topic::Gpu, "GPU architecture", "rocm.gpu_name", "gfx"),
    (Topic::Gpu, "NVLS", "init.nvls_support", "text"),
];

/// Variables that name a file, a process or a meeting point and rightly differ between any two runs.
const OWN: [&str; 6] = ["NCCL_DEBUG_FILE", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_CONF_FILE"];

/// Most values of one fact.
const MAX_VALUES: usize = 64;

/// Collects them.
pub fn of(analysis: &Analysis) -> Facts {
    let job = &analysis.job;
    let mut facts = Facts::new();
    let last = job.last_run();
    for proc in job.procs.iter().filter(|p| p.run == last) {
        let node = proc.host_index.or_else(|| (job.hosts.len() <= 1).then_some(0));
        let mut put = |topic, name: &str, value: &str| add(&mut facts, topic, name, value, node);
        fields(proc, &mut put);
        settings(proc, &mut put);
        devices(proc, &mut put);
    }
    super::host::of(job, &mut facts);
    whole(analysis, &mut facts);
    facts
}

/// Adds a value.
pub(super) fn add(facts: &mut Facts, topic: Topic, name: &str, value: &str, node: Option<usize>) {
    let values = facts.entry((topic, name.to_owned())).or_default();
    if values.len() < MAX_VALUES || values.contains_key(value) {
        values.entry(value.to_owned()).or_default().extend(node);
    }
}

type Put<'a> = dyn FnMut(Topic, &str, &str) + 'a;

fn fields(proc: &Proc, put: &mut Put<'_>) {
    for (library, version) in &proc.log.versions {
        put(Topic::Version, if *library == Library::Rccl { "RCCL" } else { "NCCL" }, version);
    }
    for (topic, name, kind, field) in FIELDS {
        for value in proc.log.ledger.of(kind).filter_map(|e| e.first.get(field)).map(str::trim).filter(|v| !v.is_empty()) {
            put(topic, name, value);
        }
    }
}

/// What the library says that it uses counts; what a script exported, only where the library is silent.
fn settings(proc: &Proc, put: &mut Put<'_>) {
    let said: BTreeSet<&str> = proc.log.settings.keys().filter(|k| k.in_force).map(|k| k.name.as_str()).collect();
    for key in proc.log.settings.keys().filter(|k| !OWN.contains(&k.name.as_str())) {
        if key.in_force || !said.contains(key.name.as_str()) {
            put(Topic::Setting, &key.name, &key.value);
        }
    }
}

fn devices(proc: &Proc, put: &mut Put<'_>) {
    let ledger = &proc.log.ledger;
    for list in ledger.of("ib.using").filter_map(|e| e.first.get("list")) {
        let names: BTreeSet<&str> = list.split('[').filter_map(|part| part.split_once(']')).map(|(_, n)| n.trim()).filter(|n| n.contains(':')).collect();
        if !names.is_empty() {
            put(Topic::Hca, "RDMA devices", &names.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
    if ledger.of("ib.no_device").next().is_some() {
        put(Topic::Hca, "RDMA devices", "no device found");
    }
    for list in ledger.of("socket.using").filter_map(|e| e.first.get("list")) {
        let names: BTreeSet<&str> = list.split('[').filter_map(|part| part.split_once(']')).filter_map(|(_, n)| n.trim().split(':').next()).filter(|n| !n.is_empty()).collect();
        if !names.is_empty() {
            put(Topic::Interface, "TCP interfaces", &names.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
    for entry in ledger.of("gdr.state") {
        if let (Some(hca), Some(state)) = (entry.first.get("hca"), entry.first.get("state")) {
            put(Topic::Gdr, &format!("GPU Direct RDMA of {hca}"), state);
        }
    }
}

/// What belongs to the job as a whole.
fn whole(analysis: &Analysis, facts: &mut Facts) {
    let job = &analysis.job;
    let mut put = |topic, name: &str, value: String| add(facts, topic, name, &value, None);
    if let Some(n) = job.nranks {
        put(Topic::Size, "ranks", n.to_string());
    }
    if let Some(n) = job.nnodes {
        put(Topic::Size, "nodes", n.to_string());
    }
    for host in job.hosts.iter().filter(|h| !h.ranks.is_empty()) {
        put(Topic::Size, "ranks of one node", host.ranks.len().to_string());
    }
    transports(job, &mut put);
    for row in &job.ranks {
        put(Topic::Stage, "ranks came to", stage(row.stage, &job.versions).to_owned());
    }
    if analysis.findings.is_empty() && job.ranks.is_empty() && job.procs.is_empty() {
        return;
    }
    for finding in analysis.findings.iter().filter(|f| f.severity != Severity::Info) {
        put(Topic::Finding, finding.id, "present".to_owned());
    }
}

/// Connections by sort: between how many ranks, over how many channels each.
fn transports(job: &Job, put: &mut dyn FnMut(Topic, &str, String)) {
    let mut sorts: BTreeMap<String, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for transport in &job.transports {
        let mut name = transport.via.split('/').take(2).collect::<Vec<_>>().join("/");
        if transport.via.contains("/GDRDMA") {
            name += " with GPU Direct RDMA";
        }
        let (pairs, channels) = sorts.entry(name).or_default();
        *pairs += 1;
        channels.insert(transport.channels);
    }
    for (name, (pairs, channels)) in sorts {
        let range = match (channels.first(), channels.last()) {
            (Some(a), Some(b)) if a != b => format!("{a} to {b} channels each"),
            (Some(a), _) => format!("{} each", plural(u64::from(*a), "channel")),
            _ => String::new(),
        };
        put(Topic::Transport, &name, format!("{}, {range}", plural(pairs, "connection")));
    }
}
