//! Attempts: the same ranks that start again after an end (elastic restarts, appended logs).

use super::{Comm, Proc, Run};
use crate::digest::{Mark, Sample};
use std::collections::BTreeSet;

/// Splits the processes and communicators into attempts, oldest first, and returns them.
///
/// Two communicators of the job's full size, whose members are different processes but claim the same ranks, are two
/// attempts if the first of one stream's processes ended before the second began.
pub fn split(procs: &mut [Proc], comms: &mut [Comm]) -> Vec<Run> {
    let Some(size) = comms.iter().filter_map(|c| c.nranks).max() else {
        return single(procs);
    };
    let mut worlds: Vec<usize> = (0..comms.len()).filter(|i| comms[*i].nranks == Some(size) && !comms[*i].is_child).collect();
    worlds.sort_by_key(|i| start(&comms[*i], procs));
    let mut generations: Vec<BTreeSet<usize>> = Vec::new();
    for w in worlds {
        let members: BTreeSet<usize> = comms[w].members.iter().map(|m| m.proc).collect();
        let known = generations.iter().position(|g| !g.is_disjoint(&members));
        let fresh = generations.last().is_none_or(|g| follows(g, &members, procs));
        match known.or_else(|| if fresh { None } else { generations.len().checked_sub(1) }) {
            Some(g) => generations[g].extend(members),
            None => generations.push(members),
        }
    }
    if generations.len() < 2 {
        return single(procs);
    }
    let starts: Vec<Vec<(u32, Mark)>> = generations.iter().map(|g| first_marks(g, procs)).collect();
    for (i, proc) in procs.iter_mut().enumerate() {
        proc.run = generations.iter().position(|g| g.contains(&i)).unwrap_or_else(|| by_place(proc.log.first.at, proc.log.last.at, &starts));
    }
    for comm in comms.iter_mut() {
        comm.run = comm.members.iter().map(|m| procs[m.proc].run).max().unwrap_or(0);
    }
    (0..generations.len()).filter_map(|r| describe(r, procs)).collect()
}

fn single(procs: &[Proc]) -> Vec<Run> {
    describe(0, procs).into_iter().collect()
}

/// The attempt in short. Lines without a header (what the program printed, a bare version line) are one process a
/// wrapper over all attempts, so they say when an attempt began only where nothing else does.
fn describe(run: usize, procs: &[Proc]) -> Option<Run> {
    let here = || procs.iter().filter(|p| p.run == run);
    let headed = || here().filter(|p| p.nccl && !p.host.is_empty());
    let first = headed().map(|p| &p.log.first).min_by_key(|s| s.at).or_else(|| here().map(|p| &p.log.first).min_by_key(|s| s.at))?;
    let ranks = match headed().count() {
        0 => here().filter(|p| p.nccl).count(),
        n => n,
    };
    Some(Run { first: Sample::clone(first), ranks })
}

fn start(comm: &Comm, procs: &[Proc]) -> Option<Mark> {
    comm.members.iter().map(|m| procs[m.proc].log.first.at).min()
}

/// Every process of `next` that shares a stream with one of `before` begins after that one's last record; at least
/// one does.
fn follows(before: &BTreeSet<usize>, next: &BTreeSet<usize>, procs: &[Proc]) -> bool {
    let mut shared = 0;
    for n in next {
        let log = &procs[*n].log;
        for b in before.iter().map(|b| &procs[*b].log).filter(|b| b.stream == log.stream) {
            if b.last.at >= log.first.at {
                return false;
            }
            shared += 1;
        }
    }
    shared > 0
}

fn first_marks(generation: &BTreeSet<usize>, procs: &[Proc]) -> Vec<(u32, Mark)> {
    let streams: BTreeSet<u32> = generation.iter().map(|p| procs[*p].log.first.at.stream).collect();
    streams.into_iter().filter_map(|s| Some((s, generation.iter().map(|p| procs[*p].log.first.at).filter(|m| m.stream == s).min()?))).collect()
}

/// The attempt of a process without the full communicator, by its place. One that speaks in the last attempt
/// belongs to it.
fn by_place(first: Mark, last: Mark, starts: &[Vec<(u32, Mark)>]) -> usize {
    let at = if last.stream == first.stream { last } else { first };
    (0..starts.len()).rev().find(|r| starts[*r].iter().any(|(s, m)| *s == at.stream && *m <= at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    #[test]
    fn an_attempt_begins_with_its_processes() {
        let mut log = String::new();
        for (pid, id) in [(100, 7), (200, 8)] {
            for rank in 0..2 {
                log += &format!("[rank{rank}]: n1:{p}:{p} [{rank}] NCCL INFO Bootstrap : Using eth0:192.0.2.1<0>\n[rank{rank}]: NCCL version 2.20.5+cuda12.4\n", p = pid + rank);
            }
            for rank in 0..2 {
                log += &format!(
                    "[rank{rank}]: n1:{p}:{p} [{rank}] NCCL INFO comm 0x5{rank} rank {rank} nranks 2 cudaDev {rank} busId {rank} commId 0x{id} - Init START\n",
                    p = pid + rank
                );
            }
        }
        let job = analyze_texts(&[("train.log", &log)]).job;
        let seen: Vec<(u64, usize)> = job.runs.iter().map(|r| (r.first.at.line, r.ranks)).collect();
        assert_eq!(seen, [(1, 2), (7, 2)]);
    }
}
