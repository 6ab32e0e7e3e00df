//! Cuts a block into records.

use super::{Record, Wrap, parse_header};
use bumpalo::Bump;

/// Longest part of one physical line that is looked at, in bytes; the rest is skipped and the record marked cut.
pub const MAX_LINE: usize = 64 * 1024;

/// Calls `sink` for every record of `block`, in order. `block` is whole lines; the last one may lack its line end.
/// Text that had to be unescaped or cleaned lives in `arena`.
pub fn records<'a>(block: &'a [u8], arena: &'a Bump, mut sink: impl FnMut(Record<'a>)) {
    let _ = arena;
    let mut start = 0;
    let mut line = 0;
    while start < block.len() {
        let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |p| start + p);
        let text = &block[start..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let (header, msg) = parse_header(text).map_or((None, text), |(h, m)| (Some(h), m));
        if !text.is_empty() {
            sink(Record { line, offset: start as u32, text, wrap: Wrap::default(), header, msg, torn_start: false, torn_end: false });
        }
        line += 1;
        start = end + 1;
    }
}
