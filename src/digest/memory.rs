//! Remembers messages and what they were read as: what is said again is not read again. Logs of many communicators
//! repeat nearly every line of their start-up.

use crate::event::{Event, Shape, Spans};
use crate::line::{Level, Record};

/// Longest record that is remembered, in bytes; none of this length was cut by the library.
pub(super) const LONGEST: usize = 1000;

/// Messages with the same hash that are remembered at once; a new one takes the place of the longest unused.
const WAYS: usize = 4;

/// Hashes.
const ROOM: usize = 1024;

/// Threads of one message whose last item is known.
const THREADS: usize = 4;

/// What a message was read as.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// Nothing recognises it.
    Nothing,
    /// A row, and where its fields stand.
    Note(&'static Shape, Spans),
    /// An event with a parser of its own.
    Typed,
}

struct Known {
    /// The message with the blanks around it as it was said last.
    text: Box<[u8]>,
    /// Where it starts and ends in `text`.
    msg: (u16, u16),
    what: What,
    /// What was said behind it last.
    next: At,
    /// When it was last said.
    used: u32,
    /// Block that `items` belongs to.
    block: u32,
    /// (source, index of its last item) in this block.
    items: [Option<(u32, u32)>; THREADS],
    turn: usize,
}

impl Known {
    fn msg(&self) -> &[u8] {
        self.text.get(usize::from(self.msg.0)..usize::from(self.msg.1)).unwrap_or_default()
    }
}

/// Row and way of the table.
pub(super) type At = (u16, u8);

/// Messages by their hash. It outlives blocks and files.
#[derive(Default)]
pub struct Memory {
    /// Made when the first message comes; calls need none.
    table: Vec<[Option<Box<Known>>; WAYS]>,
    block: u32,
    clock: u32,
    /// What was said last.
    last: At,
}

impl Memory {
    /// What was said is still known, but no longer as an item.
    pub(super) fn begin_block(&mut self) {
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            self.table.clear();
        }
    }

    /// Remembers a record of `source` and what it was read as, if the line cannot have meant more than its message.
    /// `item` is the event's index, if there is one.
    pub(super) fn keep(&mut self, record: &Record<'_>, source: u32, event: Option<(usize, &Event<'_>)>) {
        let Some(header) = &record.header else { return };
        let plain = header.level == Level::Info && header.file.is_empty() && header.time.is_none() && !header.rccl;
        let bare = record.wrap.time.is_none() && record.wrap.repeated == 0 && !record.torn_start && !record.torn_end;
        let msg = record.msg;
        if !plain || !bare || msg.is_empty() || record.text.len() >= LONGEST || !is_simple(msg) {
            return;
        }
        let what = match event {
            None => What::Nothing,
            Some((_, Event::Note(note))) => match note.fields.spans(msg) {
                Some(spans) => What::Note(note.shape, spans),
                None => What::Typed,
            },
            Some(_) => What::Typed,
        };
        if self.table.is_empty() {
            self.table.resize_with(ROOM, || [const { None }; WAYS]);
        }
        let row = place(msg);
        let way = oldest(&self.table[row], self.clock);
        let known = Known { text: msg.into(), msg: (0, msg.len() as u16), what, next: (0, 0), used: self.clock, block: self.block, items: [None; THREADS], turn: 0 };
        self.table[row][way] = Some(Box::new(known));
        let at = (row as u16, way as u8);
        self.turn_to(at);
        if let Some((item, _)) = event {
            self.said(at, source, item);
        }
    }

    fn at(&self, at: At) -> Option<&Known> {
        self.table.get(usize::from(at.0))?.get(usize::from(at.1))?.as_deref()
    }

    fn at_mut(&mut self, at: At) -> Option<&mut Known> {
        self.table.get_mut(usize::from(at.0))?.get_mut(usize::from(at.1))?.as_deref_mut()
    }

    /// What it was read as.
    pub(super) fn what(&self, at: At) -> What {
        self.at(at).map_or(What::Typed, |known| known.what)
    }

    /// Takes what was said as the last word.
    #[inline(always)]
    fn turn_to(&mut self, at: At) {
        self.clock = self.clock.wrapping_add(1);
        let (last, clock) = (std::mem::replace(&mut self.last, at), self.clock);
        if let Some(known) = self.at_mut(last) {
            known.next = at;
        }
        if let Some(known) = self.at_mut(at) {
            known.used = clock;
        }
    }

    /// The message that `rest` starts with, if it is shorter than `most` and the one that was said behind the last one before: its place, its
    /// length with the blanks around it, and itself. Start-ups repeat in order.
    #[inline(always)]
    pub(super) fn guess<'a>(&mut self, rest: &'a [u8], most: usize) -> Option<(At, usize, &'a [u8])> {
        let at = self.at(self.last)?.next;
        let known = self.at(at)?;
        let len = known.text.len();
        if len >= most || rest.get(len) != Some(&b'\n') || rest[..len] != *known.text {
            return None;
        }
        let msg = &rest[usize::from(known.msg.0)..usize::from(known.msg.1)];
        self.turn_to(at);
        Some((at, len, msg))
    }

    /// The place of the message of `line`: `None` if it was not seen.
    #[inline(always)]
    pub(super) fn find(&mut self, line: &[u8], msg: &[u8]) -> Option<At> {
        let row = place(msg);
        let ways = self.table.get_mut(row)?;
        let way = ways.iter().position(|known| known.as_ref().is_some_and(|k| k.msg() == msg))?;
        let known = ways[way].as_mut()?;
        if known.text.len() != line.len() {
            let start = line.len() - line.trim_ascii_start().len();
            (known.text, known.msg) = (line.into(), (start as u16, (start + msg.len()) as u16));
        }
        let at = (row as u16, way as u8);
        self.turn_to(at);
        Some(at)
    }

    /// The item by which `source` said it in this block.
    #[inline(always)]
    pub(super) fn item(&self, at: At, source: u32) -> Option<usize> {
        let known = self.at(at).filter(|k| k.block == self.block)?;
        known.items.iter().flatten().find(|(s, _)| *s == source).map(|(_, item)| *item as usize)
    }

    /// `source` said it by an item.
    pub(super) fn said(&mut self, at: At, source: u32, item: usize) {
        let block = self.block;
        let Some(known) = self.at_mut(at) else { return };
        if known.block != block {
            (known.block, known.items, known.turn) = (block, [None; THREADS], 0);
        }
        known.items[known.turn % THREADS] = Some((source, item as u32));
        known.turn += 1;
    }
}

/// The free place of a row, or the one that was used least lately.
fn oldest(row: &[Option<Box<Known>>; WAYS], clock: u32) -> usize {
    let age = |known: &Option<Box<Known>>| known.as_ref().map_or(u32::MAX, |k| clock.wrapping_sub(k.used));
    (0..WAYS).max_by_key(|way| age(&row[*way])).unwrap_or(0)
}

/// Place of a message in the table. Samples of it are enough: the whole is compared.
#[inline(always)]
fn place(msg: &[u8]) -> usize {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| ((hash ^ word).wrapping_mul(MULTIPLIER)).rotate_left(29);
    let word = |at: usize| msg.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |w| u64::from_le_bytes(*w));
    let len = msg.len();
    let mut hash = len as u64;
    if len < 16 {
        hash = msg.iter().fold(hash, |hash, b| mix(hash, u64::from(*b)));
    } else {
        for at in [0, 8, len / 2 - 4, len - 16, len - 8] {
            hash = mix(hash, word(at));
        }
    }
    (hash.wrapping_mul(MULTIPLIER) >> 32) as usize % ROOM
}

/// Text in which nobody looks for glued records, escapes or control bytes.
fn is_simple(msg: &[u8]) -> bool {
    !msg.starts_with(b"/") && !msg.iter().any(|b| *b < b' ' || *b == b'\\') && !["CCL ", "[FATAL ERROR]"].iter().any(|mark| memchr::memmem::find(msg, mark.as_bytes()).is_some())
}

/// `text` without blanks on either side.
pub(super) fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Parsed, map, map_with};
    use bumpalo::Bump;
    use proptest::prelude::*;

    /// What a block says, repeats told one by one.
    fn told(parsed: &Parsed<'_>) -> Vec<(u32, String)> {
        let mut all = Vec::new();
        for item in &parsed.items {
            let mut say = |line: u32| all.push((line, format!("{:?}", item.event)));
            say(item.place.line);
            // A repeat knows its first places and its last one.
            if let Some(again) = item.again.and_then(|i| parsed.repeats.get(i as usize)) {
                again.first.iter().take(again.count as usize).for_each(|p| say(p.line));
            }
        }
        for again in &parsed.again {
            let event = &parsed.items[again.item as usize].event;
            if !matches!(event, Event::Note(_)) {
                all.push((again.place.line, format!("{event:?}")));
            }
        }
        all.sort();
        all
    }

    #[test]
    fn what_is_remembered_reads_the_same() {
        let lines = [
            "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            "Using network IB",
            "nobody knows this",
            "Channel 00/0 : 0[1] -> 1[3] via P2P/CUMEM",
            "GPU Direct RDMA Enabled for GPU 2 / HCA 2 (distance 4 <= 5), read 0 mode Default",
            "NCCL_IB_HCA set to mlx5",
            "comm 0x5 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0",
            "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
        ];
        proptest!(|(picks in proptest::collection::vec((0..lines.len(), 0u32..3), 0..40), cut in 0usize..40)| {
            let text = |picks: &[(usize, u32)]| picks.iter().map(|(l, tid)| format!("node1:10:{} [0] NCCL INFO {}\n", 10 + tid, lines[*l])).collect::<Vec<_>>().concat();
            let mut memory = Memory::default();
            // No more than the places that a repeat keeps, so that every one is told.
            for part in [&picks[..cut.min(picks.len())], &picks[cut.min(picks.len())..]] {
                for piece in part.chunks(5) {
                    let text = text(piece);
                    let (arena, plain) = (Bump::new(), Bump::new());
                    let with = map_with(text.as_bytes(), &arena, None, Some(&mut memory));
                    let without = map(text.as_bytes(), &plain);
                    prop_assert_eq!(with.nccl_records, without.nccl_records);
                    prop_assert_eq!((with.items.len() + with.again.len()) as u64 + with.merged, without.items.len() as u64);
                    prop_assert_eq!(told(&with), told(&without));
                }
            }
        });
    }
}
