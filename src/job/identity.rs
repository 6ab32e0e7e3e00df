//! Who is the same process, and on which host.

use super::{HostRow, Proc};
use crate::digest::Process;
use std::collections::{BTreeMap, BTreeSet};

/// Joins the digests' processes by (host, pid). Lines without a header stay processes of their own.
pub fn merge(processes: Vec<Process>) -> Vec<Proc> {
    let mut procs: Vec<Proc> = Vec::new();
    let mut index: BTreeMap<(String, u32), Vec<usize>> = BTreeMap::new();
    for process in processes {
        let key = (process.host.clone(), process.pid);
        let mergeable = !process.host.is_empty() && process.pid != 0;
        let known = if mergeable { index.get(&key).and_then(|list| list.iter().copied().find(|i| fits(&procs[*i].log, &process))) } else { None };
        if let Some(i) = known {
            absorb(&mut procs[i].log, process);
            continue;
        }
        if mergeable {
            index.entry(key).or_default().push(procs.len());
        }
        procs.push(Proc {
            host: process.host.clone(),
            pid: process.pid,
            host_index: None,
            rank: None,
            rank_is_hint: false,
            device_ranks: Vec::new(),
            run: 0,
            nccl: process.records > 0,
            log: process,
        });
    }
    procs
}

/// Containers repeat host names and pids: two logs that claim different ranks of one communicator on the same
/// device, or different addresses on one interface, are two processes.
fn fits(a: &Process, b: &Process) -> bool {
    let ranks = |p: &Process| p.comms.iter().filter_map(|c| Some((c.comm_id?, (c.cuda_dev, c.rank?)))).collect::<BTreeSet<_>>();
    let (ours, theirs) = (ranks(a), ranks(b));
    let clash = ours.iter().any(|(id, (dev, rank))| theirs.iter().any(|(i, (d, r))| i == id && d == dev && r != rank));
    let (here, there) = (addresses(a), addresses(b));
    let moved = here.iter().any(|(iface, ip)| there.get(iface).is_some_and(|other| other != ip));
    !clash && !moved
}

/// Interface → address, as the bootstrap printed them.
fn addresses(p: &Process) -> BTreeMap<&str, &str> {
    p.ledger.of("bootstrap.using").filter_map(|e| Some((e.first.get("iface")?, e.first.get("ip")?))).collect()
}

/// Joins the log of the same process from another stream.
fn absorb(into: &mut Process, other: Process) {
    into.rank_hint = into.rank_hint.or(other.rank_hint);
    into.wrap_hosts.extend(other.wrap_hosts);
    into.wrap_ranks.extend(other.wrap_ranks);
    into.rccl |= other.rccl;
    into.versions.extend(other.versions);
    into.records += other.records;
    into.devices.extend(other.devices);
    into.dropped += other.dropped;
    if other.first.at < into.first.at {
        into.first = other.first;
    }
    if other.last.at > into.last.at {
        into.last = other.last;
    }
    for (key, sample) in other.settings {
        into.settings.entry(key).or_insert(sample);
    }
    into.ledger.merge(&other.ledger);
    into.comms.extend(other.comms);
}

/// Host names that are another one's with digits of a torn record in front: `80356node1` → `node1`.
fn torn_names(procs: &[Proc]) -> BTreeMap<String, String> {
    let mut records: BTreeMap<&str, u64> = BTreeMap::new();
    for p in procs.iter().filter(|p| !p.host.is_empty()) {
        *records.entry(&p.host).or_default() += p.log.records;
    }
    let whole = |name: &str| {
        let bare = name.trim_start_matches(|c: char| c.is_ascii_digit());
        let cut = (bare.len() < name.len() && !bare.is_empty()).then(|| records.get_key_value(bare)).flatten();
        cut.filter(|(_, n)| **n > records[name]).map(|(known, _)| (*known).to_owned())
    };
    records.keys().filter_map(|name| Some(((*name).to_owned(), whole(name)?))).collect()
}

/// Names the hosts and tells apart those that share a name but have different addresses on one interface.
pub fn hosts(procs: &mut [Proc], last_run: usize) -> Vec<HostRow> {
    let mut seen: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for p in procs.iter().filter(|p| !p.host.is_empty()) {
        for (iface, ip) in addresses(&p.log) {
            seen.entry(p.host.clone()).or_default().entry(iface.to_owned()).or_default().insert(ip.to_owned());
        }
    }
    let torn = torn_names(procs);
    let mut rows: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut names: Vec<Option<String>> = Vec::with_capacity(procs.len());
    for p in procs.iter() {
        if p.host.is_empty() || p.run != last_run {
            names.push(None);
            continue;
        }
        let own = addresses(&p.log);
        let split = seen.get(&p.host).and_then(|ifaces| ifaces.iter().find(|(iface, ips)| ips.len() > 1 && own.contains_key(iface.as_str())));
        let host = torn.get(&p.host).unwrap_or(&p.host);
        let name = split.map_or_else(|| host.clone(), |(iface, _)| format!("{} ({})", p.host, own[iface.as_str()]));
        let row = rows.entry(name.clone()).or_default();
        row.extend(p.rank);
        row.extend(p.device_ranks.iter().map(|(_, r)| *r));
        names.push(Some(name));
    }
    let mut list: Vec<HostRow> = rows.into_iter().map(|(name, ranks)| HostRow { name, ranks: ranks.into_iter().collect() }).collect();
    list.sort_by(|a, b| (a.ranks.first().copied().unwrap_or(u32::MAX), &a.name).cmp(&(b.ranks.first().copied().unwrap_or(u32::MAX), &b.name)));
    let position: BTreeMap<&str, usize> = list.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
    for (p, name) in procs.iter_mut().zip(&names) {
        p.host_index = name.as_deref().and_then(|n| position.get(n).copied());
    }
    list
}
