//! The fast way of a call's record: one pass, eight bytes at a time, no search for the line's end. What it does not
//! take goes the way of the grammar; a property test holds the two equal.

use super::{Collective, Function};
use crate::line::SLOTS;

/// Reads a collective record at the start of `rest` up to its line end, and its length. Takes nothing that
/// [`super::parse_collective`] would not read the same. `lane` numbers the prefix of the line: each has its own tails.
#[inline(always)]
pub fn quick_collective<'a>(rest: &'a [u8], lane: usize, tails: &mut Tails<'a>) -> Option<(Collective, usize)> {
    let (function, at) = function(rest)?;
    let at = at + digits(rest.get(at..)?, hex_run)?;
    let at = buffers(rest, at)?;
    let (count, len) = decimal(rest.get(at..)?)?;
    let at = at + len;
    let tail = tails.of(lane, rest.get(at..)?)?;
    let Tail { text, datatype, op, root, comm } = *tail;
    Some((Collective { function, count, datatype, op, root, comm }, at + text.len()))
}

/// Where `text` ends if it stands at `at`.
#[inline(always)]
fn text(rest: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    rest.get(at..)?.starts_with(text).then_some(at + text.len())
}

/// The function at the start of a record, and where the number behind `opCount ` begins.
#[inline(always)]
fn function(rest: &[u8]) -> Option<(Function, usize)> {
    macro_rules! known {
        ($($name:literal => $function:ident),*) => {
            $(if rest.starts_with(concat!($name, ": opCount ").as_bytes()) {
                return Some((Function::$function, $name.len() + 10));
            })*
        };
    }
    known!("AllReduce" => AllReduce, "AllGather" => AllGather, "ReduceScatter" => ReduceScatter, "Broadcast" => Broadcast, "Send" => Send, "Recv" => Recv, "Reduce" => Reduce);
    other(rest)
}

/// Functions of later versions.
#[cold]
fn other(rest: &[u8]) -> Option<(Function, usize)> {
    let head = rest.get(..24)?;
    let len = head.iter().position(|b| *b == b':')?;
    let name = &head[..len];
    let plain = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let at = text(rest, len, b": opCount ")?;
    plain.then(|| (Function::from_name(name), at))
}

/// How many digits stand at the start of `rest`: 1 to 16, as `run` counts them in a word.
#[inline(always)]
fn digits(rest: &[u8], run: fn(u64) -> usize) -> Option<usize> {
    let low = run(word(rest)?);
    if low < 8 {
        return (low > 0).then_some(low);
    }
    let len = 8 + run(word(&rest[8..])?);
    (len < 16 || !rest.get(16).is_some_and(u8::is_ascii_hexdigit)).then_some(len)
}

#[inline(always)]
fn word(text: &[u8]) -> Option<u64> {
    text.first_chunk().map(|w| u64::from_le_bytes(*w))
}

/// Length of ` sendbuff 0x7f63f0ae6000 recvbuff 0x7f63f1ae6000 count `.
const USUAL: usize = 55;

/// Where the count begins: behind both buffers, which begin at `at`. Nobody asks for their addresses.
#[inline(always)]
fn buffers(rest: &[u8], at: usize) -> Option<usize> {
    // Nearly all pointers have twelve digits.
    if let Some(usual) = rest.get(at..)?.first_chunk::<USUAL>()
        && usual[..12] == *b" sendbuff 0x"
        && usual[24..36] == *b" recvbuff 0x"
        && usual[48..] == *b" count "
    {
        let part = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| usual[at + i]));
        let ends = u64::from_le_bytes(std::array::from_fn(|i| usual[if i < 4 { 20 + i } else { 40 + i }]));
        if hex_digits(part(12)) & hex_digits(part(36)) & hex_digits(ends) == TOPS {
            return Some(at + USUAL);
        }
    }
    other_buffers(rest, at)
}

/// [`buffers`] of any length, with the third one of RCCL.
#[inline(never)]
fn other_buffers(rest: &[u8], at: usize) -> Option<usize> {
    let at = pointer(rest, text(rest, at, b" sendbuff ")?)?;
    let at = pointer(rest, text(rest, at, b" recvbuff ")?)?;
    text(rest, at, b" count ").or_else(|| text(rest, pointer(rest, text(rest, at, b" acc ")?)?, b" count "))
}

/// Where a pointer that begins at `at` ends.
fn pointer(rest: &[u8], at: usize) -> Option<usize> {
    if let Some(at) = text(rest, at, b"0x") {
        return Some(at + digits(&rest[at..], hex_run)?);
    }
    text(rest, at, b"(nil)").or_else(|| Some(at + digits(rest.get(at..)?, hex_run)?))
}

/// Powers of ten.
const TENS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// A number of at most 15 digits, and its length.
#[inline(always)]
fn decimal(rest: &[u8]) -> Option<(u64, usize)> {
    let text = word(rest)?;
    let len = decimal_run(text);
    if len == 0 {
        return None;
    }
    if len < 8 {
        return Some((value(text, len), len));
    }
    let high = word(&rest[8..])?;
    match decimal_run(high) {
        0 => Some((value(text, 8), 8)),
        // No log counts so far; the grammar may read it.
        8 => None,
        more => Some((value(text, 8) * TENS[more] + value(high, more), 8 + more)),
    }
}

/// The number that the first `len` bytes of a word spell, 1 to 8 digits.
#[inline(always)]
fn value(word: u64, len: usize) -> u64 {
    // The first digit is the lowest byte: the others move up and zeros come in below. Then pairs are summed.
    let word = (word.wrapping_sub(ONES * u64::from(b'0'))) << (64 - 8 * len as u32);
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The top bit of each byte of `low`, whose own top bits are clear, that is at or above `limit`.
#[inline(always)]
fn from(low: u64, limit: u8) -> u64 {
    low.wrapping_add(ONES * u64::from(0x80 - limit))
}

/// Number of bytes, from the lowest on, whose top bit is set in `good`.
#[inline(always)]
fn run(good: u64) -> usize {
    ((!good & TOPS).trailing_zeros() / 8) as usize
}

/// The top bit of each byte of a word that is a hex digit.
#[inline(always)]
fn hex_digits(word: u64) -> u64 {
    let low = word & !TOPS;
    let small = low | (ONES * 0x20);
    let digit = from(low, b'0') & !from(low, b'9' + 1);
    let letter = from(small, b'a') & !from(small, b'f' + 1);
    (digit | letter) & !word & TOPS
}

/// How many of a word's bytes, from the lowest on, are hex digits.
#[inline(always)]
fn hex_run(word: u64) -> usize {
    run(hex_digits(word))
}

/// How many of a word's bytes, from the lowest on, are decimal digits.
#[inline(always)]
fn decimal_run(word: u64) -> usize {
    let low = word & !TOPS;
    run(from(low, b'0') & !from(low, b'9' + 1) & !word)
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

/// Tails of one prefix remembered at once.
const TAILS: usize = 8;

/// The tails that were read last, by the prefix of their lines.
#[derive(Debug, Default)]
pub struct Tails<'a> {
    lanes: [Lane<'a>; SLOTS],
}

#[derive(Debug, Default)]
struct Lane<'a> {
    seen: [Option<Tail<'a>>; TAILS],
    /// Which one came last behind each pair of them: programs repeat their calls.
    next: [[u8; TAILS]; TAILS],
    last: usize,
    before: usize,
    turn: usize,
}

impl<'a> Tails<'a> {
    /// The tail at the start of `rest`, which ends with it or has a line end behind it.
    #[inline(always)]
    fn of(&mut self, lane: usize, rest: &'a [u8]) -> Option<&Tail<'a>> {
        let lane = &mut self.lanes[lane % SLOTS];
        let guess = usize::from(lane.next[lane.before % TAILS][lane.last % TAILS]) % TAILS;
        let at = if starts(lane.seen[guess].as_ref(), rest) { guess } else { lane.look(rest)? };
        (lane.before, lane.last) = (lane.last, at);
        lane.seen[at % TAILS].as_ref()
    }
}

#[inline(always)]
fn starts(tail: Option<&Tail<'_>>, rest: &[u8]) -> bool {
    tail.is_some_and(|t| rest.starts_with(t.text) && matches!(rest.get(t.text.len()), None | Some(b'\n')))
}

impl<'a> Lane<'a> {
    /// Finds the tail at the start of `rest`; reads it if it is new.
    #[cold]
    fn look(&mut self, rest: &'a [u8]) -> Option<usize> {
        let at = if let Some(found) = self.seen.iter().position(|t| starts(t.as_ref(), rest)) {
            found
        } else {
            let place = self.turn % TAILS;
            self.seen[place] = Some(tail(rest)?);
            self.turn = place + 1;
            place
        };
        self.next[self.before % TAILS][self.last % TAILS] = at as u8;
        Some(at)
    }
}

/// Reads a tail.
fn tail(rest: &[u8]) -> Option<Tail<'_>> {
    let number = |at: usize| {
        let len = rest.get(at..)?.iter().take(19).take_while(|b| b.is_ascii_digit()).count();
        let value = rest[at..at + len].iter().fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
        (1..=18).contains(&len).then_some((value, at + len))
    };
    let (datatype, at) = number(text(rest, 0, b" datatype ")?)?;
    let (op, at) = number(text(rest, at, b" op ")?)?;
    let at = text(rest, at, b" root ")?;
    let minus = text(rest, at, b"-");
    let (root, at) = number(minus.unwrap_or(at))?;
    let start = text(rest, at, b" comm 0x")?;
    let mut at = start + hex(&rest[start..])?;
    let comm = u64::from_str_radix(std::str::from_utf8(&rest[start..at]).ok()?, 16).ok()?;
    if let Some(inner) = text(rest, at, b" [nranks=") {
        at = text(rest, number(inner)?.1, b"]")?;
    }
    let at = text(rest, at, b" stream ")?;
    let at = if let Some(at) = text(rest, at, b"(nil)") {
        at
    } else {
        let at = text(rest, at, b"0x").unwrap_or(at);
        at + hex(&rest[at..])?
    };
    // RCCL goes on.
    let at = match text(rest, at, b" task ") {
        Some(task) => number(text(rest, number(task)?.1, b" globalrank ")?)?.1,
        None => at,
    };
    if !matches!(rest.get(at), None | Some(b'\n')) {
        return None;
    }
    let root = i32::try_from(root).ok()?;
    Some(Tail { text: &rest[..at], datatype: u8::try_from(datatype).ok()?, op: u8::try_from(op).ok()?, root: if minus.is_some() { -root } else { root }, comm })
}

/// The length of a hex number of at most 16 digits.
fn hex(rest: &[u8]) -> Option<usize> {
    let len = rest.iter().take(17).take_while(|b| b.is_ascii_hexdigit()).count();
    (1..=16).contains(&len).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::super::parse_collective;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_quick_reader_equals_the_grammar(
            name in prop_oneof![Just("AllReduce"), Just("ReduceScatter"), Just("Send"), Just("AlltoAll"), Just("PutSignal"), Just("x y")],
            numbers in proptest::array::uniform4(any::<u64>()), shorter in proptest::array::uniform4(0u32..64), root in any::<i32>(), cut in 0usize..240, junk in "[ -~]{0,3}",
            acc in prop_oneof![Just(""), Just(" acc (nil)"), Just(" acc 0x7f00")],
            sep in prop_oneof![9 => Just("\n"), 1 => Just(""), 3 => Just(" task 0 globalrank 1\n"), 1 => Just(" task 0\n")],
        ) {
            let [op, a, count, comm] = std::array::from_fn(|i| numbers[i] >> shorter[i]);
            let line = format!("{name}: opCount {op:x} sendbuff {a:#x} recvbuff (nil){acc} count {count} datatype {} op {} root {root} comm {comm:#x} [nranks=8] stream 0x1{sep}", count % 300, op % 9);
            let mut bytes = line.into_bytes();
            if cut < bytes.len() {
                bytes.splice(cut..cut, junk.bytes());
            }
            // The second look meets the remembered tail, the third a longer line with it.
            let mut tails = Tails::default();
            let longer = [&bytes[..], b"0\n"].concat();
            for text in [&bytes, &bytes, &longer] {
                if let Some((call, len)) = quick_collective(text, 3, &mut tails) {
                    prop_assert_eq!(parse_collective(&text[..len]), Some(call));
                    prop_assert!(len == text.len() || text[len] == b'\n');
                }
            }
        }

        #[test]
        fn the_usual_layout_is_read_like_any_other(numbers in proptest::array::uniform2(0x1000_0000_0000u64..=0xffff_ffff_ffff), at in 0..USUAL, byte in any::<u8>()) {
            let line = format!("Broadcast: opCount 1f sendbuff {:#x} recvbuff {:#x} count 12 datatype 7 op 0 root 0 comm 0x55aa [nranks=8] stream 0x1", numbers[0], numbers[1]);
            let mut bytes = line.into_bytes();
            prop_assert!(quick_collective(&bytes, 0, &mut Tails::default()).is_some());
            bytes["Broadcast: opCount 1f".len() + at] = byte;
            if let Some((call, len)) = quick_collective(&bytes, 0, &mut Tails::default()) {
                prop_assert_eq!(parse_collective(&bytes[..len]), Some(call));
            }
        }

        #[test]
        fn plain_calls_are_taken(numbers in proptest::array::uniform3(any::<u64>()), shorter in proptest::array::uniform3(15u32..60)) {
            let [a, b, count] = std::array::from_fn(|i| numbers[i] >> shorter[i]);
            let line = format!("AllGather: opCount {a:x} sendbuff {b:#x} recvbuff {a:#x} count {count} datatype 7 op 0 root 0 comm {b:#x} [nranks=8] stream {a:#x}\n");
            let (call, len) = quick_collective(line.as_bytes(), 0, &mut Tails::default()).unwrap();
            prop_assert_eq!((call.count, call.comm, len), (count, b, line.len() - 1));
        }

        #[test]
        fn a_run_of_digits_ends_where_the_first_other_byte_stands(bytes in any::<[u8; 8]>(), text in "[0-9a-fA-F]{0,8}", number in "[0-9]{0,8}") {
            let mut mixed = [bytes, bytes];
            mixed[0][..text.len()].copy_from_slice(text.as_bytes());
            mixed[1][..number.len()].copy_from_slice(number.as_bytes());
            for word in [bytes, mixed[0], mixed[1]] {
                prop_assert_eq!(hex_run(u64::from_le_bytes(word)), word.iter().take_while(|b| b.is_ascii_hexdigit()).count());
                prop_assert_eq!(decimal_run(u64::from_le_bytes(word)), word.iter().take_while(|b| b.is_ascii_digit()).count());
            }
        }

        #[test]
        fn a_word_spells_its_number(number in 0u64..100_000_000, junk in any::<u64>()) {
            let text = number.to_string();
            let mut word = junk.to_le_bytes();
            word[..text.len()].copy_from_slice(text.as_bytes());
            prop_assert_eq!(value(u64::from_le_bytes(word), text.len()), number);
        }
    }

    #[test]
    fn every_byte_is_told_apart() {
        for byte in 0..=255u8 {
            assert_eq!(hex_run(u64::from(byte)), usize::from(byte.is_ascii_hexdigit()), "{byte:#x}");
            assert_eq!(decimal_run(u64::from(byte)), usize::from(byte.is_ascii_digit()), "{byte:#x}");
        }
    }

    #[test]
    fn the_quick_reader_takes_the_plain_shape() {
        let line = b"AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f11 count 1048576 datatype 7 op 0 root -1 comm 0x55aa [nranks=8] stream 0x1\nnext";
        let (call, len) = quick_collective(line, 0, &mut Tails::default()).unwrap();
        assert_eq!((call.root, call.comm, &line[len..]), (-1, 0x55aa, &b"\nnext"[..]));
        let rccl = b"AllReduce: opCount 5 sendbuff 0x7a1bf0a00600 recvbuff 0x7a1bf0a00600 acc (nil) count 1 datatype 7 op 0 root 0 comm 0x3ab1b680 [nranks=2] stream (nil) task 0 globalrank 1\n";
        let (call, len) = quick_collective(rccl, 0, &mut Tails::default()).unwrap();
        assert_eq!((call.comm, len), (0x3ab1_b680, rccl.len() - 1));
        assert_eq!(quick_collective(&line[..60], 0, &mut Tails::default()), None);
    }
}
