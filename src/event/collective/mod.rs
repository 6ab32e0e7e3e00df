//! Collective and point-to-point calls. Source: `src/enqueue.cc`, `%s: opCount %lx sendbuff %p recvbuff %p count %zi
//! datatype %d op %d root %d comm %p [nranks=%d] stream %p`, NCCL 2.5.6 … 2.32, RCCL all (with a tail ` task N globalrank N`;
//! ROCm 7 has ` acc %p` in front of the count).
//! Needs subsystem COLL.

mod quick;

pub use quick::{Tails, quick_collective};

use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{hex_digit1, i32 as int, u8 as byte, u64 as long};
use nom::{IResult, Parser};
use serde::{Deserialize, Serialize};

/// The called function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Function {
    /// `AllReduce`
    AllReduce,
    /// `AllGather`
    AllGather,
    /// `ReduceScatter`
    ReduceScatter,
    /// `Broadcast`
    Broadcast,
    /// `Reduce`
    Reduce,
    /// `Send`
    Send,
    /// `Recv`
    Recv,
    /// `AlltoAll` (2.28+)
    AlltoAll,
    /// `Gather` (2.28+)
    Gather,
    /// `Scatter` (2.28+)
    Scatter,
    /// Any later function (`PutSignal` …).
    Other,
}

impl Function {
    const NAMES: [(&'static str, Self); 12] = [
        ("AllReduce", Self::AllReduce),
        ("AllGather", Self::AllGather),
        ("ReduceScatter", Self::ReduceScatter),
        ("Broadcast", Self::Broadcast),
        ("Reduce", Self::Reduce),
        ("Send", Self::Send),
        ("Recv", Self::Recv),
        ("AlltoAll", Self::AlltoAll),
        ("AllToAll", Self::AlltoAll),
        ("Gather", Self::Gather),
        ("Scatter", Self::Scatter),
        ("other", Self::Other),
    ];

    /// Reads NCCL's name.
    pub fn from_name(name: &[u8]) -> Self {
        Self::NAMES.iter().find(|(n, _)| n.as_bytes() == name).map_or(Self::Other, |(_, f)| *f)
    }

    /// NCCL's name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, f)| *f == self).map_or("other", |(n, _)| *n)
    }

    /// Point-to-point calls pair with a peer and need not be the same on all ranks.
    pub fn is_p2p(self) -> bool {
        matches!(self, Self::Send | Self::Recv)
    }
}

/// One call as enqueued. `opCount` is no call counter and takes no part in comparisons; [`op_count`] reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collective {
    /// Function.
    pub function: Function,
    /// Elements.
    pub count: u64,
    /// `ncclDataType_t`.
    pub datatype: u8,
    /// `ncclRedOp_t`.
    pub op: u8,
    /// Root rank, or the peer of Send and Recv.
    pub root: i32,
    /// Local address of the communicator.
    pub comm: u64,
}

/// The number behind `opCount` in a call's line.
pub fn op_count(line: &[u8]) -> Option<u64> {
    const MARK: &[u8] = b": opCount ";
    let at = memchr::memmem::find(line, MARK)?;
    hex(&line[at + MARK.len()..]).ok().map(|(_, n)| n)
}

/// Reads a collective record's message.
pub fn parse_collective(msg: &[u8]) -> Option<Collective> {
    let colon = memchr::memchr(b':', msg.get(..24.min(msg.len()))?)?;
    if !msg[colon..].starts_with(b": opCount ") {
        return None;
    }
    full(msg).ok().map(|(_, c)| c)
}

fn hex(input: &[u8]) -> IResult<&[u8], u64, ()> {
    let (rest, _) = nom::combinator::opt(tag(&b"0x"[..])).parse(input)?;
    let (rest, digits) = hex_digit1.parse(rest)?;
    let value = digits.iter().fold(0u64, |n, d| (n << 4) | (*d as char).to_digit(16).unwrap_or(0) as u64);
    Ok((rest, value))
}

/// A pointer prints as hex, or as `(nil)`.
fn pointer(input: &[u8]) -> IResult<&[u8], u64, ()> {
    nom::branch::alt((tag(&b"(nil)"[..]).map(|_| 0), hex)).parse(input)
}

fn full(msg: &[u8]) -> IResult<&[u8], Collective, ()> {
    let (rest, name) = take_while1(|b: u8| b.is_ascii_alphanumeric() || b == b'_').parse(msg)?;
    let (rest, _) = (tag(&b": opCount "[..]), hex, tag(&b" sendbuff "[..]), pointer, tag(&b" recvbuff "[..]), pointer).parse(rest)?;
    // RCCL of ROCm 7: the buffer of a fused addition.
    let (rest, _) = nom::combinator::opt((tag(&b" acc "[..]), pointer)).parse(rest)?;
    let (rest, (_, count)) = (tag(&b" count "[..]), long).parse(rest)?;
    let (rest, (_, datatype, _, op, _, root, _, comm)) =
        (tag(&b" datatype "[..]), byte, tag(&b" op "[..]), byte, tag(&b" root "[..]), int, tag(&b" comm "[..]), pointer).parse(rest)?;
    // A record that ends right behind the communicator was cut: the pointer may be half of one.
    let (rest, _) = tag(&b" "[..]).parse(rest)?;
    Ok((rest, Collective { function: Function::from_name(name), count, datatype, op, root, comm }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_fields_and_refuses_a_cut_record() {
        let line = b"AllReduce: opCount 1f sendbuff 0x7f00 recvbuff (nil) count 1048576 datatype 7 op 0 root -1 comm 0x55aa [nranks=8] stream 0x1";
        let call = parse_collective(line).unwrap();
        assert_eq!(call, Collective { function: Function::AllReduce, count: 1_048_576, datatype: 7, op: 0, root: -1, comm: 0x55aa });
        let rccl = b"AllReduce: opCount 5 sendbuff 0x7a1b recvbuff 0x7a1b acc (nil) count 1 datatype 7 op 0 root 0 comm 0x3ab1 [nranks=2] stream (nil) task 0 globalrank 1";
        assert_eq!(parse_collective(rccl).map(|c| (c.count, c.comm)), Some((1, 0x3ab1)));
        assert_eq!(parse_collective(&line[..90]), None);
        assert_eq!(parse_collective(b"AllReduce: opCount"), None);
        assert_eq!(parse_collective(b"Using network IB"), None);
    }
}
