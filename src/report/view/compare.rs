//! Which settings, versions and networks differ between ranks.

use crate::job::{Job, Proc};
use std::collections::BTreeMap;

/// One fact over all ranks of the last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Name of the fact or variable.
    pub name: String,
    /// Value and the ranks that have it, most ranks first.
    pub values: Vec<(String, Vec<u32>)>,
}

/// A rank without such a line.
const ABSENT: &str = "(no line)";

/// Variables that rightly differ or say nothing about the job.
const IGNORED: [&str; 4] = ["NCCL_DEBUG_FILE", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_TOPO_DUMP_FILE"];

/// Facts beside the variables: name, kind of the ledger, field.
const FACTS: [(&str, &str, &str); 3] = [("bootstrap interface", "bootstrap.using", "iface"), ("RDMA devices", "ib.using", "list"), ("CUDA driver", "init.driver", "version")];

/// What is not the same on all ranks that have a line of the library.
pub fn compare(job: &Job) -> Vec<Compared> {
    let table = table(job);
    let ranks: Vec<u32> = speakers(job).map(|(r, _)| r).collect();
    let mut list: Vec<Compared> = table.into_iter().filter_map(|(name, by_rank)| differing(name, &by_rank, &ranks)).collect();
    list.sort_by_key(|c| (c.values.iter().any(|(v, _)| v == ABSENT), c.name.clone()));
    list
}

/// Variables with one value on all ranks that printed them: name and value.
pub fn common_settings(job: &Job) -> Vec<(String, String)> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let last = job.last_run();
    for proc in job.procs.iter().filter(|p| p.run == last) {
        for key in proc.log.settings.keys() {
            let list = values.entry(&key.name).or_default();
            if !list.contains(&key.value.as_str()) {
                list.push(&key.value);
            }
        }
    }
    values.into_iter().filter_map(|(name, list)| if let [one] = list[..] { Some((name.to_owned(), one.to_owned())) } else { None }).collect()
}

/// Rank and process of all ranks that have a line of the library.
fn speakers(job: &Job) -> impl Iterator<Item = (u32, &Proc)> {
    job.ranks.iter().filter_map(|r| Some((r.rank, job.procs.get(r.proc)?))).filter(|(_, p)| p.nccl)
}

type Table = BTreeMap<String, BTreeMap<u32, String>>;

fn table(job: &Job) -> Table {
    let mut table = Table::new();
    let mut put = |name: &str, rank: u32, value: &str| {
        if !table.contains_key(name) {
            table.insert(name.to_owned(), BTreeMap::new());
        }
        if let Some(ranks) = table.get_mut(name) {
            ranks.entry(rank).or_insert_with(|| value.to_owned());
        }
    };
    for (rank, proc) in speakers(job) {
        for (_, version) in &proc.log.versions {
            put("library version", rank, version);
        }
        for (name, kind, field) in FACTS {
            if let Some(value) = proc.log.ledger.of(kind).next().and_then(|e| e.first.get(field)) {
                put(name, rank, value);
            }
        }
        let in_force = proc.log.settings.keys().filter(|k| k.in_force);
        let exported = proc.log.settings.keys().filter(|k| !k.in_force);
        for key in in_force.chain(exported).filter(|k| !IGNORED.contains(&k.name.as_str())) {
            put(&key.name, rank, &key.value);
        }
    }
    for row in &job.ranks {
        if let Some(net) = &row.net {
            put("network", row.rank, net);
        }
    }
    table
}

/// A rank without a version line is no difference: only the first rank of a node prints it in old versions.
fn differing(name: String, by_rank: &BTreeMap<u32, String>, ranks: &[u32]) -> Option<Compared> {
    let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (rank, value) in by_rank {
        groups.entry(value).or_default().push(*rank);
    }
    let is_setting = name.starts_with("NCCL_") || name.starts_with("RCCL_");
    if is_setting {
        let absent: Vec<u32> = ranks.iter().copied().filter(|r| !by_rank.contains_key(r)).collect();
        if !absent.is_empty() {
            groups.insert(ABSENT, absent);
        }
    }
    if groups.len() < 2 {
        return None;
    }
    let mut values: Vec<(String, Vec<u32>)> = groups.into_iter().map(|(v, r)| (v.to_owned(), r)).collect();
    values.sort_by_key(|(value, ranks)| (std::cmp::Reverse(ranks.len()), value.clone()));
    Some(Compared { name, values })
}
