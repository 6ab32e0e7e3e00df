//! Builds the job from a digest, step by step.

use super::{Facts, Job, Vantage, comms, divergence, identity, owner, ranks, runs, transports};
use crate::digest::Digest;
use crate::event::Library;
use std::collections::{BTreeMap, BTreeSet};

impl Job {
    /// Resolves identities, runs, communicators, ranks and transports.
    pub fn build(digest: Digest, vantage: Vantage) -> Self {
        let Digest { mut streams, processes, .. } = digest;
        let mut procs = identity::merge(processes);
        let mut comms = comms::join(&procs);
        let runs = runs::split(&mut procs, &mut comms);
        let last = runs.len().saturating_sub(1);
        comms.sort_by_key(|c| std::cmp::Reverse((c.nranks.unwrap_or(0), c.members.len(), !c.is_child)));
        let world = comms.iter().position(|c| c.run == last && c.nranks.is_some()).or_else(|| comms.iter().position(|c| c.run == last && !c.members.is_empty()));
        ranks::assign(&mut procs, &comms, &streams);
        let hosts = identity::hosts(&mut procs, last);
        comms::locate(&mut comms, &procs, &hosts);
        let nnodes = count_nodes(&comms, &hosts, world);
        let facts = facts_of(&mut streams, &procs, &hosts, nnodes);
        let mut job = Self {
            tellers: tellers(&procs, last),
            facts,
            library: library(&procs),
            versions: versions(&procs),
            nranks: comms.iter().filter_map(|c| c.nranks).max(),
            nnodes,
            nets: nets(&procs, &comms),
            hosts,
            ranks: Vec::new(),
            transports: Vec::new(),
            divergences: Vec::new(),
            streams,
            procs,
            comms,
            world,
            runs,
            vantage,
        };
        job.ranks = ranks::rows(&job);
        job.transports = transports::of_world(&job);
        job.divergences = divergence::find(&job);
        job
    }
}

/// Who of an attempt tells of which kind.
fn tellers(procs: &[super::Proc], run: usize) -> BTreeMap<String, Vec<usize>> {
    let mut tellers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, p) in procs.iter().enumerate().filter(|(_, p)| p.run == run) {
        let mut last = "";
        for kind in p.log.ledger.iter().map(|e| e.kind.as_str()) {
            // Entries are ordered by kind.
            if kind == last {
                continue;
            }
            last = kind;
            match tellers.get_mut(kind) {
                Some(list) => list.push(i),
                None => drop(tellers.insert(kind.to_owned(), vec![i])),
            }
        }
    }
    tellers
}

/// Whose facts the streams hold.
fn facts_of(streams: &mut [crate::digest::StreamInfo], procs: &[super::Proc], hosts: &[super::HostRow], nnodes: Option<u32>) -> Facts {
    if streams.iter().all(|s| s.facts.is_empty()) {
        return Facts::default();
    }
    let mut signs: Vec<owner::Signs<'_>> = hosts.iter().map(|_| owner::Signs::default()).collect();
    let mut held: BTreeMap<u32, owner::Held> = BTreeMap::new();
    for p in procs {
        let Some(host) = p.host_index else { continue };
        held.entry(p.log.stream).or_default().see(host, &p.log);
        signs[host].see(&p.log);
    }
    Facts::resolve(streams, hosts, nnodes, &signs, &held)
}

fn count_nodes(comms: &[super::Comm], hosts: &[super::HostRow], world: Option<usize>) -> Option<u32> {
    let printed = world.and_then(|w| comms.iter().filter(|c| c.nranks == comms[w].nranks && c.run == comms[w].run).filter_map(|c| c.nnodes).max());
    printed.or_else(|| (!hosts.is_empty()).then_some(hosts.len() as u32))
}

fn library(procs: &[super::Proc]) -> Option<Library> {
    let printed: BTreeSet<Library> = procs.iter().flat_map(|p| p.log.versions.iter().map(|(l, _)| *l)).collect();
    if printed.contains(&Library::Rccl) || procs.iter().any(|p| p.log.rccl) {
        return Some(Library::Rccl);
    }
    // ROCm builds of torch say "NCCL version" for RCCL too; only RCCL's own signs decide for it.
    let rocm = procs.iter().any(|p| p.log.ledger.iter().any(|e| e.kind.starts_with("rocm.")));
    let nccl = procs.iter().any(|p| p.nccl);
    match (printed.contains(&Library::Nccl) || nccl, rocm) {
        (_, true) if nccl || !printed.is_empty() => Some(Library::Rccl),
        (true, _) => Some(Library::Nccl),
        (false, false) if mentioned(procs).next().is_some() => Some(Library::Nccl),
        _ => None,
    }
}

/// Versions that frameworks mention.
fn mentioned(procs: &[super::Proc]) -> impl Iterator<Item = &str> {
    let kinds = ["vllm.nccl_version", "sglang.nccl_version", "torch.nccl_error", "torch.nccl_version", "torch.terminate", "torch.watchdog_terminated", "ib.completion"];
    let entries = procs.iter().flat_map(move |p| p.log.ledger.iter().filter(move |e| kinds.contains(&e.kind.as_str())));
    entries.filter_map(|e| e.first.get("version")).filter(|v| v.starts_with(|c: char| c.is_ascii_digit()))
}

fn versions(procs: &[super::Proc]) -> Vec<String> {
    let own: BTreeSet<&str> = procs.iter().flat_map(|p| p.log.versions.iter().map(|(_, v)| v.as_str())).collect();
    if !own.is_empty() {
        return own.into_iter().map(str::to_owned).collect();
    }
    let told: BTreeSet<&str> = mentioned(procs).collect();
    told.into_iter().map(str::to_owned).collect()
}

fn nets(procs: &[super::Proc], comms: &[super::Comm]) -> Vec<String> {
    let mut nets: BTreeSet<&str> = procs.iter().flat_map(|p| p.log.ledger.of("net.using")).filter_map(|e| e.first.get("net")).collect();
    if nets.is_empty() {
        let logs = comms.iter().flat_map(|c| &c.members).map(|m| &procs[m.proc].log.comms[m.log]);
        nets = logs.flat_map(|log| &log.channels).map(|c| c.net.as_str()).filter(|n| !n.is_empty()).collect();
    }
    nets.into_iter().map(str::to_owned).collect()
}
