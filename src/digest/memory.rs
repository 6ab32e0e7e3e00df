//! Remembers messages and what they were read as: what is said again is not read again. Logs of many communicators
//! repeat nearly every line of their start-up.

use super::communicators::same_effect;
use super::parsed::Item;
use crate::event::{Event, FieldName, Fields, Note, Shape, Spans, Stage};
use crate::line::{Level, Record};
use indexmap::IndexMap;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Longest line that is remembered, in bytes; none of this length was cut by the library.
pub(super) const LONGEST: usize = 1000;

/// Messages of a generation.
const ROOM: usize = 2048;

/// Threads of one message whose last item is known.
const THREADS: usize = 4;

/// What becomes of a message that is said again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Nothing recognises it.
    Nothing,
    /// The ledger counts it.
    Count,
    /// The ledger counts it, and its communicator moves on.
    Stage,
    /// An event with a parser of its own.
    Typed,
    /// Each is seen in its turn.
    Each,
}

impl How {
    fn of(event: Option<&Event<'_>>) -> Self {
        match event {
            None => Self::Nothing,
            // The lines of a report belong together.
            Some(Event::Note(note)) if note.shape.kind.starts_with("ras.") => Self::Each,
            Some(Event::Note(note)) if note.shape.stage.is_some_and(|stage| stage >= Stage::Network) => Self::Stage,
            Some(Event::Note(_)) => Self::Count,
            Some(_) => Self::Typed,
        }
    }
}

/// How a thread said a message in this block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    source: u32,
    /// Index into the items.
    pub item: u32,
    /// Index into the repeats; none yet if there is no such one.
    pub repeat: u32,
}

const NOBODY: Said = Said { source: u32::MAX, item: 0, repeat: u32::MAX };

/// A line behind its prefix, the key, and what is known of it.
#[derive(Clone)]
struct Known {
    /// Where its message starts and ends.
    msg: (u16, u16),
    how: How,
    turn: u8,
    /// Messages in a row with the same number change the same; 0 if each changes something.
    alike: u32,
    /// What was said behind it last.
    next: u32,
    /// Block that `said` belongs to.
    block: u32,
    said: [Said; THREADS],
}

/// A row and where its fields stand.
type Row = (&'static Shape, &'static [FieldName], Spans);

/// Lines in the order in which they came: what follows in the log follows in memory.
#[derive(Default)]
struct Generation {
    known: IndexMap<Box<[u8]>, Known, ahash::RandomState>,
    /// What is needed once a block and thread only.
    rows: Vec<Option<Row>>,
}

/// Messages by their text. It outlives blocks and files. When the young are many they become the old, and those that
/// were not said since are forgotten.
#[derive(Default)]
pub struct Memory {
    young: Generation,
    old: Generation,
    block: u32,
    /// Numbers of what changes the same that were given.
    alike: u32,
    /// What was said last.
    last: u32,
    /// Most items of a block so far.
    pub(super) most_items: usize,
}

impl Memory {
    /// What was said is still known, but no longer as an item.
    pub(super) fn begin_block(&mut self) {
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            *self = Self::default();
        }
    }

    /// Remembers a record of `source` and what it was read as, if the line cannot have meant more than its message.
    /// `known` tells that its event is the last of the items.
    pub(super) fn keep(&mut self, record: &Record<'_>, source: u32, known: bool, items: &[Item<'_>]) {
        let item = if known { items.len().wrapping_sub(1) } else { usize::MAX };
        let event = items.get(item).map(|item| &item.event);
        // Lines of a communicator's life hold its address: they do not come again.
        if matches!(event, Some(Event::Init(_))) {
            return;
        }
        let Some((line, msg)) = whole_line(record) else { return };
        let row = match event {
            Some(Event::Note(note)) => {
                let (names, spans) = note.fields.places();
                Some((note.shape, names, spans))
            }
            _ => None,
        };
        let joins = event.is_some_and(|event| same_effect(event, event));
        let before = self.said(self.last, source).and_then(|said| items.get(said.item as usize)).map(|item| &item.event);
        let alike = match (before, event, self.young.known.get_index(self.last as usize)) {
            _ if !joins => 0,
            (Some(before), Some(event), Some((_, last))) if same_effect(before, event) => last.alike,
            _ => {
                self.alike = self.alike.wrapping_add(1).max(1);
                self.alike
            }
        };
        let how = How::of(event);
        let at = self.insert(line.into(), Known { msg, how, turn: 0, alike, next: u32::MAX, block: self.block, said: [NOBODY; THREADS] }, row);
        self.turn_to(at);
        if event.is_some() {
            self.say(at, source, item as u32);
        }
    }

    fn insert(&mut self, line: Box<[u8]>, known: Known, row: Option<Row>) -> u32 {
        if self.young.known.len() >= ROOM {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.known.clear();
            self.young.rows.clear();
            self.last = u32::MAX;
        }
        let (at, earlier) = self.young.known.insert_full(line, known);
        if earlier.is_some() {
            self.young.rows[at] = row;
        } else {
            self.young.rows.push(row);
        }
        at as u32
    }

    /// Takes what was said as the last word.
    #[inline(always)]
    fn turn_to(&mut self, at: u32) {
        if let Some((_, last)) = self.young.known.get_index_mut(self.last as usize) {
            last.next = at;
        }
        self.last = at;
    }

    /// The line that `rest` starts with, if it is shorter than `most` and the one that was said behind the last one
    /// before: its number and length. Start-ups repeat in order.
    #[inline(always)]
    pub(super) fn guess(&mut self, rest: &[u8], most: usize) -> Option<(u32, usize)> {
        let at = self.young.known.get_index(self.last as usize)?.1.next;
        let line = self.young.known.get_index(at as usize)?.0;
        let len = line.len();
        if len >= most || rest.get(len) != Some(&b'\n') || rest[..len] != **line {
            return None;
        }
        self.last = at;
        Some((at, len))
    }

    /// The number of a line: `None` if it was not seen.
    pub(super) fn find(&mut self, line: &[u8]) -> Option<u32> {
        let at = if let Some(at) = self.young.known.get_index_of(line) {
            at as u32
        } else {
            let (at, _, known) = self.old.known.get_full(line)?;
            let (known, row) = (known.clone(), self.old.rows[at]);
            self.insert(line.into(), Known { next: u32::MAX, ..known }, row)
        };
        self.turn_to(at);
        Some(at)
    }

    /// What becomes of a line that is said again, and the number of what changes the same.
    #[inline(always)]
    pub(super) fn how(&self, at: u32) -> (How, u32) {
        self.young.known.get_index(at as usize).map_or((How::Nothing, 0), |(_, known)| (known.how, known.alike))
    }

    /// The message in a line.
    pub(super) fn msg<'a>(&self, at: u32, line: &'a [u8]) -> &'a [u8] {
        self.young.known.get_index(at as usize).and_then(|(_, known)| line.get(usize::from(known.msg.0)..usize::from(known.msg.1))).unwrap_or_default()
    }

    /// The row of a message, if it is a note.
    pub(super) fn note<'a>(&self, at: u32, msg: &'a [u8]) -> Option<Note<'a>> {
        let (shape, names, spans) = (*self.young.rows.get(at as usize)?)?;
        Some(Note { shape, fields: Fields::of(names, spans, msg) })
    }

    /// How `source` said it in this block.
    #[inline(always)]
    pub(super) fn said(&mut self, at: u32, source: u32) -> Option<&mut Said> {
        let (_, known) = self.young.known.get_index_mut(at as usize)?;
        if known.block != self.block {
            return None;
        }
        known.said.iter_mut().find(|said| said.source == source)
    }

    /// `source` said it by an item.
    pub(super) fn say(&mut self, at: u32, source: u32, item: u32) {
        let block = self.block;
        let Some((_, known)) = self.young.known.get_index_mut(at as usize) else { return };
        if known.block != block {
            (known.block, known.said) = (block, [NOBODY; THREADS]);
        }
        known.said[usize::from(known.turn) % THREADS] = Said { source, item, ..NOBODY };
        known.turn = known.turn.wrapping_add(1);
    }
}

/// A record's line behind its prefix, and where its message stands in it; `None` if it may have meant more.
fn whole_line<'a>(record: &Record<'a>) -> Option<(&'a [u8], (u16, u16))> {
    let header = record.header.as_ref()?;
    let plain = header.level == Level::Info && header.file.is_empty() && header.time.is_none() && !header.rccl;
    let bare = record.wrap.time.is_none() && record.wrap.repeated == 0 && !record.torn_start && !record.torn_end;
    let (text, msg) = (record.text, record.msg);
    if !plain || !bare || msg.is_empty() || text.len() >= LONGEST || !is_simple(msg) {
        return None;
    }
    let start = (msg.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let front = text.get(..start).filter(|_| start + msg.len() <= text.len())?;
    // The prefix ends with one blank, further ones belong to the line.
    let blanks = front.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count().saturating_sub(1);
    Some((&text[start - blanks..], (blanks as u16, (blanks + msg.len()) as u16)))
}

/// Text in which nobody looks for glued records, escapes or control bytes.
fn is_simple(msg: &[u8]) -> bool {
    static MARKS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("CCL "), Finder::new("[FATAL ERROR]")]);
    !msg.starts_with(b"/") && !msg.iter().any(|b| *b < b' ' || *b == b'\\') && !MARKS.iter().any(|mark| mark.find(msg).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Folder, map, map_with};
    use crate::input::Span;
    use bumpalo::Bump;
    use proptest::prelude::*;

    /// What the blocks of a stream are folded into, told in full.
    fn folded(blocks: &[String], mut memory: Option<&mut Memory>) -> String {
        let mut folder = Folder::new(0, "log".into());
        let mut offset = 0;
        for block in blocks {
            let arena = Bump::new();
            let parsed = match &mut memory {
                Some(memory) => map_with(block.as_bytes(), &arena, None, Some(memory)),
                None => map(block.as_bytes(), &arena),
            };
            let bytes = block.len() as u64;
            folder.fold(&parsed, Span { offset, bytes, open_end: false, closes_open_line: false });
            offset += bytes;
        }
        let (info, processes) = folder.finish(offset);
        format!("{info:#?}\n{processes:#?}")
    }

    const LINES: [&str; 24] = [
        "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
        "Using network IB",
        "nobody knows this",
        "Channel 00/0 : 0[1] -> 1[3] via P2P/CUMEM",
        "Channel 01/0 : 0[1] -> 1[3] via P2P/CUMEM",
        "Channel 02/0 : 0[1] -> 1[3] via P2P/CUMEM",
        "Channel 02/0 : 0[1] -> 1[3] via SHM/direct/direct",
        "Channel 00/0 : 1[3] -> 0[1] [receive] via NET/IB/0/GDRDMA",
        "Channel 00/02 :    0   1",
        "Channel 01/02 :    0   1",
        "Channel 01/02 :    1   0",
        "Connected all rings",
        "Connected all trees",
        "GPU Direct RDMA Enabled for GPU 2 / HCA 2 (distance 4 <= 5), read 0 mode Default",
        "   + PCI[48.0] - GPU/0-1b000 (0)",
        "NCCL_IB_HCA set to mlx5",
        "NCCL version 2.27.7+cuda12.9",
        "comm 0x5 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0",
        "comm 0x6 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0",
        "ncclCommInitRankConfig comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x96 - Init COMPLETE",
        "comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1b000 - Destroy COMPLETE",
        "AllReduce: opCount 3 sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count 4096 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x5581",
        "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
        "[Proxy Service] Device 0 CPU core 3",
    ];

    /// Lines that come in turns from three threads of two processes, in stretches, with others between them.
    fn block() -> impl Strategy<Value = String> {
        let stretch = (0..LINES.len(), 1..5usize, 0u32..4);
        proptest::collection::vec(stretch, 0..24).prop_map(|picks| {
            let line = |l: usize, who: u32| {
                let (pid, tid) = [(10, 10), (10, 11), (10, 12), (20, 20)][who as usize];
                format!("node1:{pid}:{tid} [0] NCCL INFO {}\n", LINES[l % LINES.len()])
            };
            picks.iter().flat_map(|(l, n, who)| (0..*n).map(move |i| line(l + i, *who))).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn what_is_remembered_folds_the_same(blocks in proptest::collection::vec(block(), 1..4)) {
            let mut memory = Memory::default();
            let plain = folded(&blocks, None);
            let lines: Vec<String> = blocks.iter().flat_map(|b| b.split_inclusive('\n')).map(str::to_owned).collect();
            prop_assert!(folded(&lines, None) == plain, "each line is a block of its own");
            // The second time all of it is known.
            for _ in 0..2 {
                let with = folded(&blocks, Some(&mut memory));
                let differs = with.lines().zip(plain.lines()).find(|(a, b)| a != b);
                prop_assert!(with == plain, "{differs:?}");
            }
        }
    }

    #[test]
    fn the_old_are_remembered_until_they_are_not_said_for_long() {
        let line = |n: usize| format!("node1:10:10 [0] NCCL INFO Using network X{n}\n");
        let many: String = (0..ROOM * 3).map(|n| line(n) + &line(0)).collect();
        let mut memory = Memory::default();
        let arena = Bump::new();
        map_with(many.as_bytes(), &arena, None, Some(&mut memory));
        let knows = |memory: &mut Memory, n: usize| memory.find(format!("Using network X{n}").as_bytes()).is_some();
        assert!(knows(&mut memory, 0));
        assert!(knows(&mut memory, ROOM * 3 - 1));
        assert!(!knows(&mut memory, 1));
        assert!(memory.young.known.len() + memory.old.known.len() <= ROOM * 2);
    }
}
