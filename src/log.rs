//! A log in memory as an iterator of events, for programs that want more than findings.

use crate::event::{Event, parse};
use crate::line::{Record, records};
use bumpalo::Bump;
use std::collections::VecDeque;
use std::fmt;

/// Text that is cut into records at once.
const PIECE: usize = 1 << 18;

/// A log in memory, decoded.
///
/// ```
/// use ncclog::Log;
///
/// let log = Log::new("node1:7:9 [0] NCCL INFO Using network Socket\nstep 1 done\n");
/// let found: Vec<_> = log.events().map(|e| (e.line, e.event.kind())).collect();
/// assert_eq!(found, [(1, "net.using")]);
/// ```
pub struct Log {
    text: Vec<u8>,
    /// Text that had to be unescaped or cleaned; grows by what that takes.
    arena: Bump,
}

/// An event where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence<'a> {
    /// Line number, 1-based.
    pub line: u64,
    /// Byte offset of the line.
    pub offset: u64,
    /// The record: text, header, what wrappers said. Its own `line` and `offset` count from some piece's start.
    pub record: Record<'a>,
    /// What it says.
    pub event: Event<'a>,
}

/// The events of a log in order. Made by [`Log::events`].
pub struct Events<'a> {
    log: &'a Log,
    at: usize,
    line: u64,
    ready: VecDeque<Occurrence<'a>>,
}

impl Log {
    /// A log of any bytes: lines of NCCL, RCCL, frameworks, kernels, with the prefixes of launchers and log drivers.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), arena: Bump::new() }
    }

    /// Every event that is recognised, warnings that nothing describes included ([`Event::UnknownWarn`]). Reads as far as
    /// the iterator is asked.
    pub fn events(&self) -> Events<'_> {
        Events { log: self, at: 0, line: 1, ready: VecDeque::new() }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

impl Events<'_> {
    /// Reads the next piece of whole lines; false at the end.
    fn read(&mut self) -> bool {
        let Some(rest) = self.log.text.get(self.at..).filter(|r| !r.is_empty()) else { return false };
        let end = rest.get(PIECE..).and_then(|tail| memchr::memchr(b'\n', tail)).map_or(rest.len(), |n| PIECE + n + 1);
        let (offset, line) = (self.at as u64, self.line);
        let ready = &mut self.ready;
        let lines = records(&rest[..end], &self.log.arena, |record| {
            if let Some(event) = parse(&record) {
                ready.push_back(Occurrence { line: line + u64::from(record.line), offset: offset + u64::from(record.offset), record, event });
            }
        });
        self.at += end;
        self.line += u64::from(lines);
        true
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Occurrence<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            if !self.read() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_offsets_hold_over_many_pieces() {
        let row = "node1:7:9 [0] NCCL INFO Using network IB\nnothing\n";
        let log = Log::new(row.repeat(20_000));
        assert!(log.text.len() > 3 * PIECE);
        let mut count = 0;
        for (i, found) in log.events().enumerate() {
            assert_eq!((found.line, found.offset), (2 * i as u64 + 1, (i * row.len()) as u64));
            assert_eq!(found.event.kind(), "net.using");
            count += 1;
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn an_empty_log_and_an_endless_line_are_fine() {
        assert_eq!(Log::new("").events().count(), 0);
        let mut text = vec![b'x'; 2 * PIECE];
        text.extend_from_slice(b"\nnode1:7:9 [0] NCCL WARN odd");
        let found: Vec<u64> = Log::new(text).events().map(|e| e.line).collect();
        assert_eq!(found, [2]);
    }
}
