//! Collective and point-to-point calls. Source: `src/enqueue.cc`, `%s: opCount %lx sendbuff %p recvbuff %p count %zi
//! datatype %d op %d root %d comm %p [nranks=%d] stream %p`, NCCL 2.5.6 … 2.32, RCCL all (with a tail ` task N globalrank N`).
//! Needs subsystem COLL.

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

/// One call as enqueued. `opCount` is no call counter and takes no part in comparisons.
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
    /// As printed, hex.
    pub op_count: u64,
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
    let (rest, (_, op_count, _, _, _, _, _, count)) =
        (tag(&b": opCount "[..]), hex, tag(&b" sendbuff "[..]), pointer, tag(&b" recvbuff "[..]), pointer, tag(&b" count "[..]), long).parse(rest)?;
    let (rest, (_, datatype, _, op, _, root, _, comm)) =
        (tag(&b" datatype "[..]), byte, tag(&b" op "[..]), byte, tag(&b" root "[..]), int, tag(&b" comm "[..]), pointer).parse(rest)?;
    // A record that ends right behind the communicator was cut: the pointer may be half of one.
    let (rest, _) = tag(&b" "[..]).parse(rest)?;
    Ok((rest, Collective { function: Function::from_name(name), count, datatype, op, root, comm, op_count }))
}

/// Reads a collective record at the start of `rest` up to its line end in one pass, and its length. Takes nothing that
/// [`parse_collective`] would not read the same; what it does not take goes the usual way.
pub fn quick_collective<'a>(rest: &'a [u8], tails: &mut Tails<'a>) -> Option<(Collective, usize)> {
    let mut at = Reader { rest, at: 0 };
    let function = at.function()?;
    let op_count = at.hex()?;
    at.text(b" sendbuff ")?;
    at.pointer()?;
    at.text(b" recvbuff ")?;
    at.pointer()?;
    at.text(b" count ")?;
    let count = at.decimal()?;
    let tail = tails.of(&rest[at.at..])?;
    let Tail { text, datatype, op, root, comm } = *tail;
    Some((Collective { function, count, datatype, op, root, comm, op_count }, at.at + text.len()))
}

/// What follows the count. Calls of one communicator repeat it.
#[derive(Debug, Clone, Copy)]
struct Tail<'a> {
    text: &'a [u8],
    datatype: u8,
    op: u8,
    root: i32,
    comm: u64,
}

/// Tails remembered at once.
const TAILS: usize = 8;

/// The tails that were read last.
#[derive(Debug, Default)]
pub struct Tails<'a> {
    seen: [Option<Tail<'a>>; TAILS],
    last: usize,
    turn: usize,
}

impl<'a> Tails<'a> {
    /// The tail at the start of `rest`, which ends with it or has a line end behind it.
    fn of(&mut self, rest: &'a [u8]) -> Option<&Tail<'a>> {
        let starts = |tail: &Option<Tail<'a>>| tail.as_ref().is_some_and(|t| rest.starts_with(t.text) && matches!(rest.get(t.text.len()), None | Some(b'\n')));
        if !starts(&self.seen[self.last]) {
            self.last = if let Some(found) = self.seen.iter().position(starts) {
                found
            } else {
                let place = self.turn;
                self.seen[place] = Some(tail(rest)?);
                self.turn = (place + 1) % TAILS;
                place
            };
        }
        self.seen[self.last].as_ref()
    }
}

/// Reads a tail.
fn tail(rest: &[u8]) -> Option<Tail<'_>> {
    let mut at = Reader { rest, at: 0 };
    at.text(b" datatype ")?;
    let datatype = u8::try_from(at.decimal()?).ok()?;
    at.text(b" op ")?;
    let op = u8::try_from(at.decimal()?).ok()?;
    at.text(b" root ")?;
    let negative = at.text(b"-").is_some();
    let root = i32::try_from(at.decimal()?).ok()?;
    at.text(b" comm 0x")?;
    let comm = at.hex()?;
    if at.text(b" [nranks=").is_some() {
        at.decimal()?;
        at.text(b"]")?;
    }
    at.text(b" stream ")?;
    at.pointer()?;
    let text = &rest[..at.at];
    matches!(rest.get(at.at), None | Some(b'\n')).then_some(Tail { text, datatype, op, root: if negative { -root } else { root }, comm })
}

/// A cursor over a record.
struct Reader<'a> {
    rest: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    #[inline(always)]
    fn text(&mut self, text: &[u8]) -> Option<()> {
        let end = self.at + text.len();
        (self.rest.get(self.at..end)? == text).then(|| self.at = end)
    }

    /// A function's name up to `: opCount `.
    #[inline(always)]
    fn function(&mut self) -> Option<Function> {
        let head = self.rest.get(..24)?;
        let len = head.iter().position(|b| *b == b':')?;
        let function = match &head[..len] {
            b"AllReduce" => Function::AllReduce,
            b"AllGather" => Function::AllGather,
            b"ReduceScatter" => Function::ReduceScatter,
            b"Broadcast" => Function::Broadcast,
            b"Send" => Function::Send,
            b"Recv" => Function::Recv,
            b"Reduce" => Function::Reduce,
            name if !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') => Function::from_name(name),
            _ => return None,
        };
        self.at = len;
        self.text(b": opCount ")?;
        Some(function)
    }

    #[inline(always)]
    fn hex(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.rest.get(self.at).map(|b| HEX[*b as usize]).filter(|d| *d < 16) {
            value = (value << 4) | u64::from(digit);
            self.at += 1;
        }
        (1..=16).contains(&(self.at - start)).then_some(value)
    }

    /// Skips a pointer; nobody asks for its value.
    #[inline(always)]
    fn pointer(&mut self) -> Option<()> {
        let prefixed = self.text(b"0x").is_some();
        if !prefixed && self.rest.get(self.at) == Some(&b'(') {
            return self.text(b"(nil)");
        }
        // Two words hold the longest pointer and the byte that ends it, unless the record ends within them.
        let Some(words) = self.rest.get(self.at..).and_then(|r| r.first_chunk::<16>()) else { return self.hex().map(|_| ()) };
        let (low, high) = (u128::from_le_bytes(*words) as u64, (u128::from_le_bytes(*words) >> 64) as u64);
        let first = hex_run(low);
        let len = if first == 8 { 8 + hex_run(high) } else { first };
        if len == 0 || (len == 16 && self.rest.get(self.at + 16).is_some_and(u8::is_ascii_hexdigit)) {
            return None;
        }
        self.at += len;
        Some(())
    }

    #[inline(always)]
    fn decimal(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.rest.get(self.at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        (1..=18).contains(&(self.at - start)).then_some(value)
    }
}

/// How many of a word's bytes, from the lowest on, are hex digits. All eight are looked at at once: the sums carry into
/// a byte's top bit where the byte is at or above a limit.
#[inline(always)]
fn hex_run(word: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let low = word & !TOPS;
    let from = |limit: u8| ONES * u64::from(0x80 - limit);
    let digit = low.wrapping_add(from(b'0')) & !low.wrapping_add(from(b'9' + 1));
    let small = low | (ONES * 0x20);
    let letter = small.wrapping_add(from(b'a')) & !small.wrapping_add(from(b'f' + 1));
    let other = !((digit | letter) & !word) & TOPS;
    (other.trailing_zeros() / 8) as usize
}

/// Value of a hex digit; 16 for every other byte.
static HEX: [u8; 256] = {
    let mut table = [16u8; 256];
    let mut i = 0;
    while i < 10 {
        table[b'0' as usize + i] = i as u8;
        i += 1;
    }
    let mut i = 0;
    while i < 6 {
        table[b'a' as usize + i] = 10 + i as u8;
        table[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_quick_reader_equals_the_grammar(
            name in prop_oneof![Just("AllReduce"), Just("ReduceScatter"), Just("Send"), Just("AlltoAll"), Just("PutSignal"), Just("x y")],
            numbers in proptest::array::uniform4(any::<u64>()), root in any::<i32>(), cut in 0usize..240, junk in "[ -~]{0,3}",
            sep in prop_oneof![9 => Just("\n"), 1 => Just(""), 1 => Just(" task 0 globalrank 1\n")],
        ) {
            let [op, a, count, comm] = numbers;
            let line = format!("{name}: opCount {op:x} sendbuff {a:#x} recvbuff (nil) count {count} datatype {} op {} root {root} comm {comm:#x} [nranks=8] stream 0x1{sep}", count % 300, op % 9);
            let mut bytes = line.into_bytes();
            if cut < bytes.len() {
                bytes.splice(cut..cut, junk.bytes());
            }
            // The second look meets the remembered tail, the third a longer line with it.
            let mut tails = Tails::default();
            let longer = [&bytes[..], b"0\n"].concat();
            for text in [&bytes, &bytes, &longer] {
                if let Some((call, len)) = quick_collective(text, &mut tails) {
                    prop_assert_eq!(parse_collective(&text[..len]), Some(call));
                    prop_assert!(len == text.len() || text[len] == b'\n');
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_run_of_hex_digits_ends_where_the_first_other_byte_stands(bytes in any::<[u8; 8]>(), text in "[0-9a-fA-F]{0,8}") {
            let mut mixed = bytes;
            mixed[..text.len()].copy_from_slice(text.as_bytes());
            for word in [bytes, mixed] {
                prop_assert_eq!(hex_run(u64::from_le_bytes(word)), word.iter().take_while(|b| b.is_ascii_hexdigit()).count());
            }
        }
    }

    #[test]
    fn every_byte_is_told_apart() {
        for byte in 0..=255u8 {
            let expected = usize::from(byte.is_ascii_hexdigit());
            assert_eq!(hex_run(u64::from(byte)), expected, "{byte:#x}");
        }
    }

    #[test]
    fn the_quick_reader_takes_the_plain_shape() {
        let line = b"AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f11 count 1048576 datatype 7 op 0 root -1 comm 0x55aa [nranks=8] stream 0x1\nnext";
        let (call, len) = quick_collective(line, &mut Tails::default()).unwrap();
        assert_eq!((call.root, call.comm, &line[len..]), (-1, 0x55aa, &b"\nnext"[..]));
        assert_eq!(quick_collective(&line[..60], &mut Tails::default()), None);
    }

    #[test]
    fn reads_all_fields_and_refuses_a_cut_record() {
        let line = b"AllReduce: opCount 1f sendbuff 0x7f00 recvbuff (nil) count 1048576 datatype 7 op 0 root -1 comm 0x55aa [nranks=8] stream 0x1";
        let call = parse_collective(line).unwrap();
        assert_eq!(call, Collective { function: Function::AllReduce, count: 1_048_576, datatype: 7, op: 0, root: -1, comm: 0x55aa, op_count: 0x1f });
        assert_eq!(parse_collective(&line[..90]), None);
        assert_eq!(parse_collective(b"AllReduce: opCount"), None);
        assert_eq!(parse_collective(b"Using network IB"), None);
    }
}
