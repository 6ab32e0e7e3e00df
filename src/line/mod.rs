//! Records: what a physical line holds once wrappers are peeled and the NCCL header is read.
//!
//! One physical line yields 0…n records (glued records, `\r` progress bars, escaped JSON). Everything is a borrowed
//! slice of the block, or of the block's arena where text had to be unescaped or cleaned. This stage knows nothing
//! of what a message means, and is stateless between blocks. Only what a log driver cut (CRI, Docker) or spread over
//! lines (pretty-printed JSON) is put together again, within a block.

mod cutter;
mod header;
mod records;
mod scan;
mod time;
mod visitor;
mod wrap;

#[cfg(test)]
mod laws;

pub use header::{Header, Level, parse_header};
pub use records::{records, visit};
pub use time::{Clock, Time, civil_date};
pub use visitor::{Known, MAX_LINE, SLOTS, Visitor};
pub use wrap::{RankHint, Wrap, front};

/// One logical log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of line ends before this record within its block (0-based).
    pub line: u32,
    /// Byte offset within the block at which the record's physical line starts.
    pub offset: u32,
    /// The whole record as it stood, wrappers included, without line end. This is what evidence quotes.
    pub text: &'a [u8],
    /// What the wrappers said (hints, never identity where the header says otherwise).
    pub wrap: Wrap<'a>,
    /// The NCCL header, if there is one.
    pub header: Option<Header<'a>>,
    /// The message: text after header and wrappers, without colours.
    pub msg: &'a [u8],
    /// The record starts in the middle of somebody else's text (a torn write); its first token is not to be trusted.
    pub torn_start: bool,
    /// The record is cut at its end (torn write, NCCL's 1,023-byte buffer, over-long line); its last token is unknown.
    pub torn_end: bool,
    /// The physical line before this one held an NCCL header, or this is the block's first line: a record without
    /// header may be the rest of that message (line ends in messages, hard-wrapped pastes).
    pub follows_nccl: bool,
}
