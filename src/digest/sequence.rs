//! The calls of one process on one communicator: a count, hash checkpoints whose stride doubles when the table is
//! full, the first calls' records and the last [`KEPT_CALLS`] signatures in full.

use crate::event::Collective;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Signatures kept in full at the end of the sequence.
pub const KEPT_CALLS: usize = 256;

/// Checkpoints kept; when they are full the stride doubles.
const MAX_CHECKPOINTS: usize = 64;

/// A call with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCall {
    /// Function, `Function::name`.
    pub function: crate::event::Function,
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

/// The folded sequence. Point-to-point calls are counted apart: they pair with a peer and differ rightly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Collective calls.
    pub len: u64,
    /// Send and Recv calls.
    pub p2p: u64,
    /// Rolling hash over all collective signatures.
    pub hash: u64,
    /// Hash after every `stride` calls.
    pub checkpoints: Vec<u64>,
    /// Distance of checkpoints; 0 before the first call.
    pub stride: u64,
    /// The last calls, oldest first; `len - tail.len()` is the index of the first.
    pub tail: VecDeque<KeptCall>,
    /// The last Send and Recv calls.
    pub p2p_tail: VecDeque<KeptCall>,
}

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl KeptCall {
    /// A call at a place.
    pub fn new(call: &Collective, line: u64, offset: u64) -> Self {
        Self { function: call.function, count: call.count, datatype: call.datatype, op: call.op, root: call.root, line, offset }
    }

    /// Whether two ranks issued the same operation.
    pub fn same(&self, other: &Self) -> bool {
        (self.function, self.count, self.datatype, self.op, self.root) == (other.function, other.count, other.datatype, other.op, other.root)
    }

    fn signature(&self) -> u64 {
        let small = (self.function as u64) | (u64::from(self.datatype) << 8) | (u64::from(self.op) << 16) | (u64::from(self.root as u32) << 24);
        (small ^ self.count.rotate_left(29)).wrapping_mul(MULTIPLIER) ^ (self.count >> 17)
    }
}

impl Sequence {
    /// Adds the next call.
    pub fn push(&mut self, call: KeptCall) {
        if call.function.is_p2p() {
            self.p2p += 1;
            keep(&mut self.p2p_tail, call, 16);
            return;
        }
        self.len += 1;
        self.hash = self.hash.wrapping_mul(MULTIPLIER).wrapping_add(call.signature());
        if self.stride == 0 {
            self.stride = 1;
        }
        if self.len.is_multiple_of(self.stride) {
            if self.checkpoints.len() == MAX_CHECKPOINTS {
                let mut odd = false;
                self.checkpoints.retain(|_| {
                    odd = !odd;
                    !odd
                });
                self.stride *= 2;
            }
            if self.len.is_multiple_of(self.stride) {
                self.checkpoints.push(self.hash);
            }
        }
        keep(&mut self.tail, call, KEPT_CALLS);
    }

    /// The kept call with this index (0-based), if it is still kept.
    pub fn get(&self, index: u64) -> Option<&KeptCall> {
        let first = self.len - self.tail.len() as u64;
        self.tail.get(usize::try_from(index.checked_sub(first)?).ok()?)
    }

    /// Hash after `n` calls, if there is a checkpoint for it.
    pub fn hash_at(&self, n: u64) -> Option<u64> {
        if n == self.len {
            return Some(self.hash);
        }
        if self.stride == 0 || n == 0 || !n.is_multiple_of(self.stride) {
            return None;
        }
        self.checkpoints.get((n / self.stride - 1) as usize).copied()
    }
}

fn keep(tail: &mut VecDeque<KeptCall>, call: KeptCall, most: usize) {
    if tail.len() == most {
        tail.pop_front();
    }
    tail.push_back(call);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Function;

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
        assert_eq!(a.get(743), None);
        assert!(a.checkpoints.len() <= MAX_CHECKPOINTS);
    }

    #[test]
    fn send_and_recv_do_not_shift_the_collectives() {
        let mut a = Sequence::default();
        a.push(KeptCall { function: Function::Send, ..call(1) });
        a.push(call(2));
        assert_eq!((a.len, a.p2p), (1, 1));
    }
}
