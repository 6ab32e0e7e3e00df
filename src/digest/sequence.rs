//! The calls of one process on one communicator: a count, hash checkpoints whose stride doubles when the table is
//! full, and the last [`KEPT_CALLS`] signatures in full. A checkpoint knows its line, so that the calls behind it can
//! be read again.

use crate::event::{Collective, Function};
use std::collections::VecDeque;

/// Signatures kept in full at the end of the sequence.
pub const KEPT_CALLS: usize = 256;

/// Signatures that are let go at once.
const SLACK: usize = 64;

/// Checkpoints kept; when they are full the stride doubles.
pub(super) const MAX_CHECKPOINTS: usize = 64;

/// Peers whose Send and Recv calls are counted apart.
pub(super) const MAX_PEERS: usize = 64;

/// A call with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptCall {
    /// Function, `Function::name`.
    pub function: Function,
    /// Elements.
    pub count: u64,
    /// `ncclDataType_t`
    pub datatype: u8,
    /// `ncclRedOp_t`
    pub op: u8,
    /// Root, or peer of Send and Recv.
    pub root: i32,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte offset of the line.
    pub offset: u64,
}

/// The hash of all calls up to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Rolling hash, this call included.
    pub hash: u64,
    /// Line number of the call, 1-based.
    pub line: u64,
    /// Byte offset of the line.
    pub offset: u64,
}

/// The messages between this rank and one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    /// Rank of the peer in the communicator.
    pub rank: i32,
    /// Send calls to it.
    pub sent: u64,
    /// Recv calls from it.
    pub received: u64,
    /// Line and byte offset of the last Send to it.
    pub last_sent: (u64, u64),
    /// Line and byte offset of the last Recv from it.
    pub last_received: (u64, u64),
}

/// The folded sequence. Point-to-point calls are counted apart: they pair with a peer and differ rightly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Collective calls.
    pub len: u64,
    /// Send and Recv calls.
    pub p2p: u64,
    /// Calls of functions that are not known to be collective.
    pub others: u64,
    /// Rolling hash over all collective signatures.
    pub hash: u64,
    /// One after every `stride` calls.
    pub checkpoints: Vec<Checkpoint>,
    /// Distance of checkpoints, a power of two; 0 before the first call.
    pub stride: u64,
    /// The last calls, oldest first; `len - tail.len()` is the index of the first.
    pub tail: VecDeque<KeptCall>,
    /// Send and Recv calls by peer, ordered by its rank.
    pub peers: Vec<Peer>,
    /// Send and Recv calls with further peers, which are not told apart.
    pub other_peers: u64,
    /// Place of the last peer in `peers`; most calls go to the same or the next one.
    pub(super) last_peer: usize,
}

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// `MULTIPLIER * INVERSE` is 1, so that a call can be taken back from a hash.
const INVERSE: u64 = 0xF1DE_83E1_9937_733D;

const _: () = assert!(MULTIPLIER.wrapping_mul(INVERSE) == 1);

impl KeptCall {
    /// A call at a place.
    pub fn new(call: &Collective, line: u64, offset: u64) -> Self {
        Self { function: call.function, count: call.count, datatype: call.datatype, op: call.op, root: call.root, line, offset }
    }

    /// Whether two ranks issued the same operation.
    pub fn same(&self, other: &Self) -> bool {
        (self.function, self.count, self.datatype, self.op, self.root) == (other.function, other.count, other.datatype, other.op, other.root)
    }

    /// Number that equal operations share.
    pub fn signature(&self) -> u64 {
        let small = (self.function as u64) | (u64::from(self.datatype) << 8) | (u64::from(self.op) << 16) | (u64::from(self.root as u32) << 24);
        (small ^ self.count.rotate_left(29)).wrapping_mul(MULTIPLIER) ^ (self.count >> 17)
    }
}

impl Sequence {
    /// Adds the next call.
    #[inline(always)]
    pub fn push(&mut self, call: KeptCall) {
        if matches!(call.function, Function::Send | Function::Recv | Function::Other) {
            return self.message(&call);
        }
        self.len += 1;
        self.hash = roll(self.hash, &call);
        if self.len & self.stride.wrapping_sub(1) == 0 || self.stride == 0 {
            self.check(&call);
        }
        if self.tail.len() >= KEPT_CALLS {
            self.make_room();
        }
        self.tail.push_back(call);
    }

    /// Lets calls go, many at a time.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.tail.len() == KEPT_CALLS + SLACK {
            self.settle();
        } else if self.tail.capacity() < KEPT_CALLS + SLACK {
            // To double the room would waste most of it in each of thousands of ranks.
            self.tail.reserve_exact(SLACK);
        }
    }

    /// Keeps no more than the last [`KEPT_CALLS`] in full.
    pub fn settle(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(KEPT_CALLS));
    }

    /// Sets a checkpoint behind a call.
    #[inline(never)]
    fn check(&mut self, call: &KeptCall) {
        self.stride = self.stride.max(1);
        if self.checkpoints.len() == MAX_CHECKPOINTS {
            let mut odd = false;
            self.checkpoints.retain(|_| {
                odd = !odd;
                !odd
            });
            self.stride *= 2;
        }
        if self.len & (self.stride - 1) == 0 {
            self.checkpoints.push(Checkpoint { hash: self.hash, line: call.line, offset: call.offset });
        }
    }

    /// Counts a call that ranks need not have in common.
    fn message(&mut self, call: &KeptCall) {
        // One-sided and unknown calls.
        if call.function == Function::Other {
            self.others += 1;
            return;
        }
        self.p2p += 1;
        let near = [self.last_peer, self.last_peer + 1].into_iter().find(|i| self.peers.get(*i).is_some_and(|p| p.rank == call.root));
        let at = match near.map_or_else(|| self.peers.binary_search_by_key(&call.root, |p| p.rank), Ok) {
            Ok(at) => at,
            Err(_) if self.peers.len() >= MAX_PEERS => {
                self.other_peers += 1;
                return;
            }
            Err(at) => {
                self.peers.insert(at, Peer { rank: call.root, ..Peer::default() });
                at
            }
        };
        self.last_peer = at;
        let peer = &mut self.peers[at];
        if call.function == Function::Send {
            peer.sent += 1;
            peer.last_sent = (call.line, call.offset);
        } else {
            peer.received += 1;
            peer.last_received = (call.line, call.offset);
        }
    }

    /// The messages with one peer; `None` if none were counted.
    pub fn peer(&self, rank: u32) -> Option<&Peer> {
        let rank = i32::try_from(rank).ok()?;
        self.peers.binary_search_by_key(&rank, |p| p.rank).ok().map(|at| &self.peers[at])
    }

    /// Index of the first kept call.
    pub fn kept_from(&self) -> u64 {
        self.len - self.tail.len() as u64
    }

    /// The kept call with this index (0-based), if it is still kept.
    pub fn get(&self, index: u64) -> Option<&KeptCall> {
        self.tail.get(usize::try_from(index.checked_sub(self.kept_from())?).ok()?)
    }

    /// Hash after `n` calls, if there is a checkpoint for it.
    pub fn hash_at(&self, n: u64) -> Option<u64> {
        if n == 0 {
            return Some(0);
        }
        self.checkpoint(n).map(|c| c.hash).or_else(|| self.unroll(n))
    }

    /// The hash before the last kept calls: each call is taken back from the final one.
    fn unroll(&self, n: u64) -> Option<u64> {
        let from = usize::try_from(n.checked_sub(self.kept_from())?).ok().filter(|from| *from <= self.tail.len())?;
        Some(self.tail.range(from..).rev().fold(self.hash, |hash, call| hash.wrapping_sub(call.signature()).wrapping_mul(INVERSE)))
    }

    /// The checkpoint after `n` calls, if there is one.
    pub fn checkpoint(&self, n: u64) -> Option<&Checkpoint> {
        if self.stride == 0 || n == 0 || !n.is_multiple_of(self.stride) {
            return None;
        }
        self.checkpoints.get(usize::try_from(n / self.stride - 1).ok()?)
    }
}

/// The hash of a sequence with one more call.
pub fn roll(hash: u64, call: &KeptCall) -> u64 {
    hash.wrapping_mul(MULTIPLIER).wrapping_add(call.signature())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(i: u64) -> KeptCall {
        KeptCall { function: Function::AllReduce, count: i % 7, datatype: 7, op: 0, root: 0, line: i, offset: i * 100 }
    }

    #[test]
    fn checkpoints_agree_where_the_prefix_agrees() {
        let (mut a, mut b) = (Sequence::default(), Sequence::default());
        for i in 0..1000 {
            a.push(call(i));
            b.push(if i == 700 { KeptCall { count: 99, ..call(i) } } else { call(i) });
        }
        assert_eq!(a.stride, b.stride);
        assert_eq!(a.stride, 16);
        assert_eq!(a.hash_at(688), b.hash_at(688));
        assert!(a.hash_at(688).is_some());
        assert_ne!(a.hash_at(704), b.hash_at(704));
        assert_eq!(a.get(999).map(|c| c.line), Some(999));
        a.settle();
        assert_eq!(a.get(743), None);
        assert!(a.checkpoints.len() <= MAX_CHECKPOINTS);
        assert_eq!(a.checkpoint(688).map(|c| (c.line, c.offset)), Some((687, 68_700)));
        assert_eq!(a.checkpoint(689), None);
        assert_eq!(a.hash_at(900), (0..900).map(call).try_fold(0, |hash, c| Some(roll(hash, &c))));
        assert_eq!((a.hash_at(744).is_some(), a.hash_at(743), a.hash_at(1001)), (true, None, None));
    }

    #[test]
    fn messages_are_counted_by_peer() {
        let mut a = Sequence::default();
        let to = |function, peer, i| KeptCall { function, root: peer, ..call(i) };
        for i in 0..2000 {
            a.push(to(Function::Send, (i % 80) as i32, i));
        }
        a.push(to(Function::Recv, 3, 5000));
        assert_eq!(a.peers.len(), MAX_PEERS);
        let peer = a.peer(3).unwrap();
        assert_eq!((peer.sent, peer.received, peer.last_received.0), (25, 1, 5000));
        assert_eq!(a.peer(79), None);
        assert_eq!(a.other_peers + a.peers.iter().map(|p| p.sent + p.received).sum::<u64>(), a.p2p);
    }

    #[test]
    fn send_and_recv_do_not_shift_the_collectives() {
        let mut a = Sequence::default();
        a.push(KeptCall { function: Function::Send, ..call(1) });
        a.push(call(2));
        assert_eq!((a.len, a.p2p), (1, 1));
    }
}
