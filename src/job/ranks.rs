//! Which rank a process is, and the table of ranks.

use super::{Comm, Job, Proc, RankRow};
use crate::digest::{Sample, StreamInfo};
use crate::event::Stage;
use std::collections::{BTreeMap, BTreeSet};

/// Gives every process its rank: the library's own word first, then wrappers, pids, streams and file names.
pub fn assign(procs: &mut [Proc], comms: &[Comm], streams: &[StreamInfo]) {
    own_ranks(procs, comms);
    let by_pid: BTreeMap<(u32, u32), Vec<usize>> = procs.iter().enumerate().filter(|(_, p)| p.nccl && p.pid != 0).fold(BTreeMap::new(), |mut map, (i, p)| {
        map.entry((p.log.stream, p.pid)).or_default().push(i);
        map
    });
    let mut per_stream: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (i, p) in procs.iter().enumerate().filter(|(_, p)| p.nccl) {
        per_stream.entry(p.log.stream).or_default().insert(i);
    }
    // A bare version line beside a process's own lines is no second process.
    for list in per_stream.values_mut().filter(|l| l.iter().any(|i| !procs[*i].host.is_empty())) {
        list.retain(|i| !procs[*i].host.is_empty());
    }
    let one_node = procs.iter().filter(|p| !p.host.is_empty()).map(|p| p.host.as_str()).collect::<BTreeSet<_>>().len() <= 1;
    for i in 0..procs.len() {
        let p = &procs[i];
        if p.rank.is_some() || !p.device_ranks.is_empty() {
            continue;
        }
        let hinted = p.log.rank_hint.or_else(|| (p.log.wrap_ranks.len() == 1).then(|| p.log.wrap_ranks.first().copied()).flatten());
        let hinted = hinted.filter(|(global, _)| *global || one_node).map(|(_, r)| r);
        let same_pid = by_pid.get(&(p.log.stream, p.pid)).filter(|l| l.len() == 1 && p.pid != 0).map(|l| l[0]);
        let alone = per_stream.get(&p.log.stream).filter(|l| l.len() == 1).and_then(|l| l.first().copied());
        let twin = same_pid.or(if hinted.is_none() { alone } else { None }).filter(|t| *t != i);
        if let Some(t) = twin
            && p.host.is_empty()
            && !p.nccl
        {
            let (host, rank, run, devices) = (procs[t].host.clone(), procs[t].rank, procs[t].run, procs[t].device_ranks.clone());
            let p = &mut procs[i];
            p.host = host;
            p.run = run;
            p.rank = rank;
            p.device_ranks = devices;
            continue;
        }
        let p = &procs[i];
        let from_name = || streams.get(p.log.stream as usize).and_then(|s| rank_of_name(&s.path));
        let only = per_stream.get(&p.log.stream).is_none_or(|l| l.len() <= 1);
        if let Some(rank) = hinted.or_else(|| only.then(from_name).flatten()) {
            procs[i].rank = Some(rank);
            procs[i].rank_is_hint = true;
        }
    }
}

/// Ranks that the library printed, in the largest communicator of each process.
fn own_ranks(procs: &mut [Proc], comms: &[Comm]) {
    let mut found: BTreeMap<usize, (u32, BTreeMap<u32, u32>)> = BTreeMap::new();
    for comm in comms {
        let size = comm.nranks.unwrap_or(0);
        for m in &comm.members {
            let Some(rank) = m.rank else { continue };
            let log = &procs[m.proc].log.comms[m.log];
            let dev = log.cuda_dev.or(log.dev.map(u32::from)).unwrap_or(0);
            let entry = found.entry(m.proc).or_insert_with(|| (size, BTreeMap::new()));
            if size > entry.0 {
                *entry = (size, BTreeMap::new());
            }
            if size == entry.0 {
                entry.1.entry(dev).or_insert(rank);
            }
        }
    }
    for (p, (_, ranks)) in found {
        if ranks.len() == 1 {
            procs[p].rank = ranks.into_values().next();
        } else {
            procs[p].device_ranks = ranks.into_iter().collect();
        }
    }
}

/// `rank3.log`, `rank_3.out`, `nccl-rank3.log` → 3.
pub fn rank_of_name(path: &str) -> Option<u32> {
    let name = path.rsplit(['/', '\\', '!']).next()?;
    let at = name.find("rank")? + 4;
    let digits: String = name[at..].trim_start_matches(['_', '-', '.']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Proc {
    /// The rank of a record of this process that came from device `dev`.
    pub fn rank_on(&self, dev: Option<u16>) -> Option<u32> {
        self.rank.or_else(|| dev.and_then(|d| self.device_ranks.iter().find(|(known, _)| *known == u32::from(d)).map(|(_, r)| *r)))
    }
}

/// One row for every rank of the last run that has a log, ascending.
pub fn rows(job: &Job) -> Vec<RankRow> {
    let mut rows: BTreeMap<u32, RankRow> = BTreeMap::new();
    let last_run = job.last_run();
    for m in job.world().map(|w| w.members.as_slice()).unwrap_or_default() {
        let proc = &job.procs[m.proc];
        let log = &proc.log.comms[m.log];
        let Some(rank) = m.rank.or_else(|| proc.rank_on(log.dev)) else { continue };
        let row = RankRow {
            rank,
            host: host_name(job, proc),
            pid: (proc.pid != 0).then_some(proc.pid),
            device: log.cuda_dev.or(log.dev.map(u32::from)),
            bus_id: log.bus_id.clone(),
            stage: log.stage(),
            net: log.net.as_ref().map(|(n, _)| n.clone()).or_else(|| proc.log.ledger.of("net.using").last().and_then(|e| e.first.get("net").map(str::to_owned))),
            last: Sample::clone(log.last.as_ref().filter(|_| !proc.device_ranks.is_empty()).unwrap_or(&proc.log.last)),
            proc: m.proc,
        };
        rows.entry(rank).or_insert(row);
    }
    for (i, proc) in job.procs.iter().enumerate().filter(|(_, p)| p.run == last_run) {
        let Some(rank) = proc.rank else { continue };
        let stage = proc.log.comms.iter().map(crate::digest::CommLog::stage).max().unwrap_or(Stage::Loaded).max(process_stage(proc));
        let row = rows.entry(rank).or_insert_with(|| RankRow {
            rank,
            host: host_name(job, proc),
            pid: (proc.pid != 0).then_some(proc.pid),
            device: proc.log.devices.first().map(|d| u32::from(*d)),
            bus_id: None,
            stage,
            net: proc.log.ledger.of("net.using").last().and_then(|e| e.first.get("net").map(str::to_owned)),
            last: Sample::clone(&proc.log.last),
            proc: i,
        });
        if proc.log.last.at.stream == row.last.at.stream && proc.log.last.at > row.last.at {
            row.last = Sample::clone(&proc.log.last);
        }
    }
    rows.into_values().collect()
}

fn host_name(job: &Job, proc: &Proc) -> Option<String> {
    proc.host_index.map(|h| job.hosts[h].name.clone()).or_else(|| (!proc.host.is_empty()).then(|| proc.host.clone()))
}

/// Stages that belong to the process before any communicator exists.
fn process_stage(proc: &Proc) -> Stage {
    let has = |kind: &str| proc.log.ledger.of(kind).next().is_some();
    if has("ib.using") || has("ib.no_device") || has("socket.using") {
        Stage::NetDevices
    } else if has("bootstrap.using") {
        Stage::BootstrapInterface
    } else {
        Stage::Loaded
    }
}
