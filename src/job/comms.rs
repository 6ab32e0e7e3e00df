//! Joins the ranks' views of a communicator.

use super::{Comm, HostRow, Member, Proc};
use std::collections::{BTreeMap, BTreeSet};

/// What makes two views the same communicator.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// The printed id and size.
    Id(u64, Option<u32>),
    /// No id: the n-th communicator of that size (and parentage) in its process.
    Order(Option<u32>, bool, usize),
}

/// Groups the views. A child without an id joins by its place among equals: (size, is a child, order).
pub fn join(procs: &[Proc]) -> Vec<Comm> {
    let mut groups: BTreeMap<Key, Vec<Member>> = BTreeMap::new();
    let size = only_size(procs);
    for (p, proc) in procs.iter().enumerate() {
        let mut order: BTreeMap<(Option<u32>, bool, Option<u16>), usize> = BTreeMap::new();
        for (l, log) in proc.log.comms.iter().enumerate() {
            let child = log.parent.is_some();
            let key = if let Some(id) = log.comm_id {
                Key::Id(id, log.nranks)
            } else {
                let nranks = log.nranks.or(size);
                let n = order.entry((nranks, child, log.dev)).or_default();
                *n += 1;
                Key::Order(nranks, child, *n)
            };
            groups.entry(key).or_default().push(Member { rank: log.rank, proc: p, log: l });
        }
    }
    groups
        .into_iter()
        .map(|(key, mut members)| {
            members.sort_by_key(|m| (m.rank.unwrap_or(u32::MAX), m.proc, m.log));
            let (id, nranks) = match key {
                Key::Id(id, n) => (Some(id), n),
                Key::Order(n, ..) => (None, n),
            };
            let logs = || members.iter().map(|m| &procs[m.proc].log.comms[m.log]);
            let nnodes = logs().filter_map(|l| l.nnodes).max();
            let is_child = logs().any(|l| l.parent.is_some());
            Comm { id, nranks, nnodes, members, spans_nodes: false, run: 0, is_child }
        })
        .collect()
}

/// The one size that views without an id have. Up to 2.17 only the rank that prints the rings knows it before the end
/// of the initialisation.
fn only_size(procs: &[Proc]) -> Option<u32> {
    let logs = || procs.iter().flat_map(|p| &p.log.comms).filter(|l| l.comm_id.is_none());
    let sizes: BTreeSet<u32> = logs().filter_map(|l| l.nranks).collect();
    let size = sizes.first().copied().filter(|_| sizes.len() == 1)?;
    logs().filter_map(|l| l.rank).all(|r| r < size).then_some(size)
}

/// Decides which communicators span nodes. NCCL's nNodes alone does not tell: ranks of one host without P2P and SHM
/// between them count as nodes.
pub fn locate(comms: &mut [Comm], procs: &[Proc], hosts: &[HostRow]) {
    for comm in comms {
        let names: BTreeSet<&str> =
            comm.members.iter().map(|m| procs[m.proc].host_index.map_or(procs[m.proc].host.as_str(), |h| hosts[h].name.as_str())).filter(|h| !h.is_empty()).collect();
        let complete = comm.nranks.is_some_and(|n| comm.members.iter().filter(|m| m.rank.is_some() && !procs[m.proc].host.is_empty()).count() >= n as usize);
        let printed = comm.nnodes.unwrap_or(1) > 1;
        comm.spans_nodes = names.len() >= 2 || (printed && !complete) || (printed && names.len() == 1 && twins(comm, procs)) || leaves_by_net(comm, procs);
    }
}

/// A NET channel leads to a rank that has no log. Inside a node that happens only with P2P and SHM switched off.
fn leaves_by_net(comm: &Comm, procs: &[Proc]) -> bool {
    let known: BTreeSet<u32> = comm.members.iter().filter_map(|m| m.rank).collect();
    let shm_off = |p: &Proc| p.log.settings.keys().any(|k| k.name == "NCCL_SHM_DISABLE" && k.value != "0");
    comm.nnodes.is_none_or(|n| n > 1)
        && comm.members.iter().any(|m| {
            let proc = &procs[m.proc];
            !shm_off(proc) && proc.log.comms[m.log].channels.iter().any(|c| !c.net.is_empty() && (!known.contains(&c.from) || !known.contains(&c.to)))
        })
}

/// Two nodes that share a name: NCCL counts several nodes although there are local connections inside each.
fn twins(comm: &Comm, procs: &[Proc]) -> bool {
    let (Some(nranks), Some(nnodes)) = (comm.nranks, comm.nnodes) else { return false };
    nranks > nnodes && comm.members.iter().map(|m| &procs[m.proc].log.comms[m.log]).any(|log| log.local_ranks.is_some_and(|l| l > 1))
}
