//! Where the ranks of a communicator leave their common order of collectives, and which messages found no partner.
//!
//! Kept calls name the first difference exactly; older ones only narrow it to the stretch between two checkpoints,
//! which `analysis` may read again and [`Divergence::settle`].

use super::{Comm, Job};
use crate::digest::{CommLog, KeptCall, Peer, Sequence};

/// Calls behind the difference that are enough to tell a skipped call from another one.
pub const LOOK_AHEAD: usize = 32;

/// Sides that are compared call by call; more would not be shown.
pub const MAX_SIDES: usize = 4;

/// Most calls that a rank is said to have skipped or added.
const MAX_SHIFT: usize = 8;

/// The ranks of a communicator issued different collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// Index into `Job::comms`.
    pub comm: usize,
    /// So many calls are the same on all sides.
    pub agreed: u64,
    /// After so many calls the sides surely differ.
    pub until: u64,
    /// Who issued the same calls, the largest group first; at least two.
    pub sides: Vec<Side>,
}

/// Ranks that agree with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Indexes into `Comm::members`, ascending by rank.
    pub members: Vec<usize>,
    /// What they issued as call number `agreed`, counted from 0, if that is known.
    pub call: Option<KeptCall>,
    /// The line of the first member's call, if it was read.
    pub text: Option<String>,
    /// How their order differs from the first side's.
    pub shift: Option<Shift>,
}

/// A shifted order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// So many calls of the first side are missing; the order goes on behind them.
    Skipped(u64),
    /// So many calls come in addition, then the common order goes on.
    Added(u64),
}

/// A Send without its Recv, or the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpaired {
    /// Index into `Comm::members` of the rank that sends.
    pub sender: usize,
    /// Index into `Comm::members` of the rank that receives.
    pub receiver: usize,
    /// Send calls.
    pub sent: u64,
    /// Recv calls.
    pub received: u64,
    /// Line and byte offset of the last call of the side that issued more.
    pub last: (u64, u64),
}

impl Divergence {
    /// The first differing call is known.
    pub fn is_exact(&self) -> bool {
        self.until == self.agreed + 1 && self.sides.iter().all(|s| s.call.is_some())
    }

    /// Takes in what the sides issued behind call `agreed`, in the order of `sides`: the calls from the first
    /// differing one on. Sides that agree after all are joined.
    pub fn settle(&mut self, agreed: u64, calls: &[Vec<KeptCall>]) {
        let mut sides: Vec<(Side, &[KeptCall])> = Vec::new();
        for (side, calls) in self.sides.drain(..).zip(calls) {
            let Some(first) = calls.first() else { continue };
            match sides.iter_mut().find(|(s, _)| s.call.is_some_and(|c| c.same(first))) {
                Some((known, _)) => known.members.extend(side.members),
                None => sides.push((Side { call: Some(*first), ..side }, calls)),
            }
        }
        sides.sort_by_key(|(s, _)| (std::cmp::Reverse(s.members.len()), s.members.first().copied()));
        let common = sides.first().map(|(_, calls)| *calls).unwrap_or_default();
        for (i, (side, calls)) in sides.iter_mut().enumerate() {
            side.members.sort_unstable();
            side.shift = if i == 0 { None } else { shift(common, calls) };
        }
        self.sides = sides.into_iter().map(|(s, _)| s).collect();
        (self.agreed, self.until) = (agreed, agreed + 1);
    }
}

/// Whether one order goes on behind a few calls of the other.
fn shift(common: &[KeptCall], odd: &[KeptCall]) -> Option<Shift> {
    const ENOUGH: usize = 3;
    let follows = |a: &[KeptCall], b: &[KeptCall]| a.len().min(b.len()) >= ENOUGH && a.iter().zip(b).take(LOOK_AHEAD).all(|(x, y)| x.same(y));
    let replaced = follows(common.get(1..)?, odd.get(1..)?);
    if replaced {
        return None;
    }
    (1..=MAX_SHIFT).find_map(|n| {
        if common.get(n..).is_some_and(|rest| follows(rest, odd)) {
            Some(Shift::Skipped(n as u64))
        } else if odd.get(n..).is_some_and(|rest| follows(common, rest)) {
            Some(Shift::Added(n as u64))
        } else {
            None
        }
    })
}

/// The first difference on every communicator of the last attempt.
pub fn find(job: &Job) -> Vec<Divergence> {
    let last = job.last_run();
    // Children without an id are joined by their order only; that is too weak to accuse a rank.
    let sure = |c: &Comm| c.run == last && (c.id.is_some() || !c.is_child);
    job.comms.iter().enumerate().filter(|(_, c)| sure(c)).filter_map(|(i, c)| on(job, i, c)).collect()
}

fn on(job: &Job, index: usize, comm: &Comm) -> Option<Divergence> {
    let logs: Vec<(usize, &CommLog)> =
        comm.members.iter().enumerate().filter(|(_, m)| m.rank.is_some()).map(|(i, m)| (i, job.comm_log(m))).filter(|(_, l)| l.calls.len > 0).collect();
    let (_, base) = logs.iter().max_by_key(|(i, l)| (l.calls.len, std::cmp::Reverse(*i)))?;
    let differ = |log: &CommLog| pair(&base.calls, &log.calls).filter(|_| !(lines_were_lost(job, base, log)));
    let (agreed, until) = logs.iter().filter_map(|(_, l)| differ(l)).min()?;
    let mut sides: Vec<(u64, Side)> = Vec::new();
    for (member, log) in &logs {
        let call = log.calls.get(agreed).copied().filter(|_| until == agreed + 1);
        let Some(key) = call.as_ref().map(KeptCall::signature).or_else(|| log.calls.hash_at(until)) else { continue };
        match sides.iter_mut().find(|(k, _)| *k == key) {
            Some((_, side)) => side.members.push(*member),
            None => sides.push((key, Side { members: vec![*member], call, text: None, shift: None })),
        }
    }
    let mut sides: Vec<Side> = sides.into_iter().map(|(_, s)| s).collect();
    sides.sort_by_key(|s| (std::cmp::Reverse(s.members.len()), s.members.first().copied()));
    sides.truncate(MAX_SIDES);
    let mut found = Divergence { comm: index, agreed, until, sides };
    if found.sides.iter().all(|s| s.call.is_some()) {
        let tail = |s: &Side| (agreed..).map_while(|i| job.comm_log(&comm.members[s.members[0]]).calls.get(i).copied()).take(LOOK_AHEAD + MAX_SHIFT).collect();
        let calls: Vec<Vec<KeptCall>> = found.sides.iter().map(tail).collect();
        found.settle(agreed, &calls);
    }
    (found.sides.len() > 1).then_some(found)
}

/// The first difference of two sequences: (calls that agree, calls after which they differ).
fn pair(a: &Sequence, b: &Sequence) -> Option<(u64, u64)> {
    let shorter = a.len.min(b.len);
    let kept = a.kept_from().max(b.kept_from());
    let stride = a.stride.max(b.stride).max(1);
    let differ = |n: u64| a.hash_at(n).zip(b.hash_at(n)).map(|(x, y)| x != y);
    let mut agreed = 0;
    // A stride holds at most twice as many calls as there are checkpoints.
    let marks = (1..).map(|i| i * stride).take_while(|n| *n <= shorter.min(kept));
    for n in marks.chain((kept <= shorter).then_some(kept)) {
        match differ(n) {
            Some(true) => return Some((agreed, n)),
            Some(false) => agreed = n,
            None => {}
        }
    }
    (kept..shorter).find(|i| a.get(*i).zip(b.get(*i)).is_some_and(|(x, y)| !x.same(y))).map(|i| (i, i + 1))
}

/// Processes that write to one stream tear each other's lines, and a torn call is lost. Then the numbers differ and
/// the last calls are the same.
fn lines_were_lost(job: &Job, a: &CommLog, b: &CommLog) -> bool {
    const ENOUGH: usize = 32;
    let shared = |log: &CommLog| job.procs.iter().filter(|p| p.nccl && p.log.stream == log.stream).take(2).count() > 1;
    let both = a.calls.tail.len().min(b.calls.tail.len());
    let same_end = both >= ENOUGH && a.calls.tail.iter().rev().zip(b.calls.tail.iter().rev()).take(ENOUGH * 2).all(|(x, y)| x.same(y));
    a.calls.len != b.calls.len && same_end && (shared(a) || shared(b))
}

/// Pairs of ranks of a communicator, both with a log, of which one sent more than the other received or the reverse.
pub fn unpaired(job: &Job, comm: &Comm) -> Vec<Unpaired> {
    let by_rank = |rank: i32| {
        let rank = u32::try_from(rank).ok()?;
        let first = comm.members.partition_point(|m| m.rank.is_some_and(|r| r < rank));
        comm.members.get(first).filter(|m| m.rank == Some(rank)).map(|m| (first, job.comm_log(m)))
    };
    let mut list = Vec::new();
    for (i, member) in comm.members.iter().enumerate() {
        let (Some(me), log) = (member.rank, job.comm_log(member)) else { continue };
        for peer in &log.calls.peers {
            let Some((j, other)) = by_rank(peer.rank).filter(|(j, l)| *j != i && l.calls.other_peers == 0) else { continue };
            let back = other.calls.peer(me).copied().unwrap_or(Peer { rank: me as i32, ..Peer::default() });
            if peer.sent > back.received {
                list.push(Unpaired { sender: i, receiver: j, sent: peer.sent, received: back.received, last: peer.last_sent });
            }
            if peer.received > back.sent {
                list.push(Unpaired { sender: j, receiver: i, sent: back.sent, received: peer.received, last: peer.last_received });
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Function;

    fn call(count: u64, i: u64) -> KeptCall {
        KeptCall { function: Function::AllReduce, count, datatype: 7, op: 0, root: 0, line: i, offset: i * 100 }
    }

    fn sequence(counts: impl IntoIterator<Item = u64>) -> Sequence {
        let mut s = Sequence::default();
        for (i, count) in counts.into_iter().enumerate() {
            s.push(call(count, i as u64));
        }
        s
    }

    /// No two neighbours are the same, and no short period.
    fn order(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|i| i * i % 1009)
    }

    #[test]
    fn kept_calls_name_the_place_and_older_ones_the_stretch() {
        let with = |at: u64| sequence(order(100_000).enumerate().map(move |(i, c)| if i as u64 == at { 7777 } else { c }));
        let base = sequence(order(100_000));
        assert_eq!(pair(&base, &with(99_900)), Some((99_900, 99_901)));
        let (agreed, until) = pair(&base, &with(70_000)).unwrap();
        assert!(agreed <= 70_000 && 70_000 < until && until - agreed <= base.stride, "{agreed} {until}");
        // Behind the last checkpoint and before the kept calls.
        let (agreed, until) = pair(&base, &with(99_700)).unwrap();
        assert!(agreed <= 99_700 && 99_700 < until && until <= 99_744, "{agreed} {until}");
        assert_eq!(pair(&base, &base), None);
        assert_eq!(pair(&base, &sequence(order(5))), None, "a shorter one that agrees");
        assert_eq!(pair(&sequence([]), &base), None);
    }

    #[test]
    fn different_strides_meet_at_common_multiples() {
        let (long, short) = (sequence(order(200_000)), sequence(order(50_000).enumerate().map(|(i, c)| if i == 20_000 { 5000 } else { c })));
        assert!(long.stride > short.stride);
        let (agreed, until) = pair(&long, &short).unwrap();
        assert!(agreed <= 20_000 && 20_000 < until && until - agreed <= long.stride);
    }

    #[test]
    fn skipped_added_and_replaced_calls_are_told_apart() {
        let calls = |counts: &[u64]| counts.iter().map(|c| call(*c, 0)).collect::<Vec<_>>();
        let common = calls(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(shift(&common, &calls(&[2, 3, 4, 5])), Some(Shift::Skipped(1)));
        assert_eq!(shift(&common, &calls(&[4, 5, 6, 7, 8])), Some(Shift::Skipped(3)));
        assert_eq!(shift(&common, &calls(&[9, 8, 1, 2, 3])), Some(Shift::Added(2)));
        assert_eq!(shift(&common, &calls(&[9, 2, 3, 4])), None);
        assert_eq!(shift(&common, &calls(&[9])), None);
    }
}
