//! Remembers the messages of a block: what the same thread says again is not read again.

use crate::line::{Level, Record};
use ahash::RandomState;
use bumpalo::Bump;

/// Longest message that is remembered, in bytes; no record of this length is cut by the library.
pub(super) const LONGEST_REPEAT: usize = 512;

/// Messages remembered at once.
const ROOM: usize = 2048;

/// Marks a message that nothing recognised.
const NOTHING: u32 = u32::MAX;

/// A message and what became of it.
#[derive(Clone, Copy)]
struct Known<'a> {
    msg: &'a [u8],
    source: u32,
    item: u32,
}

/// What became of a message.
pub(super) enum Before {
    /// Nothing recognised it.
    Nothing,
    /// An item with this index.
    Item(usize),
}

/// A table without chains: a message takes the place of another one with the same hash.
pub(super) struct Memory<'a> {
    arena: &'a Bump,
    /// Made when the first message comes; blocks of calls need none.
    table: Option<&'a mut [Known<'a>]>,
    state: RandomState,
}

impl<'a> Memory<'a> {
    pub fn new(arena: &'a Bump) -> Self {
        Self { arena, table: None, state: RandomState::with_seeds(1, 2, 3, 4) }
    }

    fn place(&self, msg: &[u8], source: u32) -> usize {
        (self.state.hash_one((source, msg)) as usize) % ROOM
    }

    /// Remembers a record of `source` and its item, if the line cannot have meant more than its message.
    pub fn keep(&mut self, record: &Record<'a>, source: usize, item: Option<usize>) {
        let Some(header) = &record.header else { return };
        let plain = header.level == Level::Info && header.file.is_empty() && header.time.is_none() && !header.rccl;
        let bare = record.wrap.time.is_none() && record.wrap.repeated == 0 && !record.torn_start && !record.torn_end;
        let msg = record.msg;
        if !plain || !bare || msg.is_empty() || msg.len() > LONGEST_REPEAT || !is_simple(msg) {
            return;
        }
        let at = self.place(msg, source as u32);
        let table = self.table.get_or_insert_with(|| self.arena.alloc_slice_fill_copy(ROOM, Known { msg: b"", source: 0, item: NOTHING }));
        table[at] = Known { msg, source: source as u32, item: item.map_or(NOTHING, |i| i as u32) };
    }

    /// What became of the message: `None` if it was not seen.
    pub fn find(&self, msg: &[u8], source: u32) -> Option<Before> {
        let table = self.table.as_ref()?;
        let known = table.get(self.place(msg, source))?;
        if known.source != source || msg.is_empty() || known.msg != msg {
            return None;
        }
        Some(if known.item == NOTHING { Before::Nothing } else { Before::Item(known.item as usize) })
    }
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
