//! Who receives a block's records, and the bounds that cutting them keeps.

use super::header::Header;
use super::{Record, Wrap};

/// Prefixes remembered at once.
pub const SLOTS: usize = 16;

/// Longest part of one physical line that is looked at, in bytes; the rest is skipped and the record marked cut.
pub const MAX_LINE: usize = 64 * 1024;

/// Receives the records of a block.
pub trait Visitor<'a> {
    /// One record.
    fn record(&mut self, record: Record<'a>);

    /// May take a line at once whose prefix was seen before. `rest` is the block from the line's message on; the
    /// answer is the message's length without its line end, or `None` to have it cut the usual way. It must take only
    /// messages of which it has looked at every byte: nothing else looks for glued records or control bytes in them.
    fn quick(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        let _ = (known, rest);
        None
    }
}

impl<'a, F: FnMut(Record<'a>)> Visitor<'a> for F {
    fn record(&mut self, record: Record<'a>) {
        self(record);
    }
}

/// A line whose prefix was seen before in its block.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a, 's> {
    /// Number of the prefix, below [`SLOTS`]; it means the same prefix until `generation` changes.
    pub slot: usize,
    /// Grows whenever a slot gets another prefix.
    pub generation: u32,
    /// Wrappers in the prefix.
    pub wrap: &'s Wrap<'a>,
    /// Header in the prefix.
    pub header: &'s Header<'a>,
    /// The block.
    pub block: &'a [u8],
    /// Line ends before the line.
    pub line: u32,
    /// Offset of the line.
    pub offset: usize,
    /// Offset of its message.
    pub message: usize,
}
