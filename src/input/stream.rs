//! Blocks of a sequential reader.

use super::decode::read_up_to;
use super::{OVERHANG, Span};
use std::io::{self, Read};

/// Cuts a reader into blocks of whole lines.
pub struct StreamBlocks<'a> {
    reader: Box<dyn Read + 'a>,
    size: usize,
    /// Text behind the last line end of the previous block.
    carry: Vec<u8>,
    /// Offset of the next byte that a block will hold.
    offset: u64,
    /// Inside an over-long line whose head was given out: everything up to its end is skipped.
    skipping: bool,
    ended: bool,
}

impl<'a> StreamBlocks<'a> {
    /// Blocks of about `size` bytes.
    pub fn new(reader: Box<dyn Read + 'a>, size: usize) -> Self {
        Self { reader, size: size.max(1), carry: Vec::new(), offset: 0, skipping: false, ended: false }
    }

    /// Bytes given out or skipped so far.
    pub fn bytes(&self) -> u64 {
        self.offset + self.carry.len() as u64
    }

    /// Reads the next block into `buffer`; `None` at the end. After an error the rest is given up; what came before
    /// it was given out.
    pub fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<Span>> {
        let mut closes = false;
        loop {
            if self.ended && self.carry.is_empty() {
                return Ok(closes.then_some(Span { offset: self.offset, bytes: 0, open_end: false, closes_open_line: true }));
            }
            if self.ended {
                buffer.clear();
                buffer.append(&mut self.carry);
            } else {
                let start = self.carry.len();
                let end = start + self.size;
                // What the buffer held before is overwritten: only what it lacks is filled with zeros.
                if buffer.len() < end {
                    buffer.resize(end, 0);
                }
                buffer[..start].copy_from_slice(&self.carry);
                self.carry.clear();
                let got = read_up_to(&mut self.reader, &mut buffer[start..end]);
                let n = *got.as_ref().unwrap_or(&0);
                buffer.truncate(start + n);
                self.ended = n == 0;
                if let Err(error) = got {
                    if buffer.is_empty() {
                        return Err(error);
                    }
                    // The error is met again at the next call, after the carried text was given out.
                    self.ended = false;
                    self.carry.clear();
                    let span = self.give(buffer, closes);
                    return Ok(Some(span));
                }
            }
            if self.skipping {
                if let Some(end) = memchr::memchr(b'\n', buffer) {
                    self.skipping = false;
                    closes = true;
                    self.offset += end as u64 + 1;
                    buffer.drain(..=end);
                } else {
                    self.offset += buffer.len() as u64;
                    buffer.clear();
                }
            }
            if let Some(span) = self.cut(buffer, closes) {
                return Ok(Some(span));
            }
        }
    }

    /// Gives out the whole lines of `buffer`, if there are any; keeps the rest.
    fn cut(&mut self, buffer: &mut Vec<u8>, closes: bool) -> Option<Span> {
        if let Some(end) = memchr::memrchr(b'\n', buffer) {
            self.carry.extend_from_slice(&buffer[end + 1..]);
            buffer.truncate(end + 1);
            return Some(self.give(buffer, closes));
        }
        if buffer.is_empty() {
            return closes.then(|| self.give(buffer, closes));
        }
        if self.ended {
            return Some(self.give(buffer, closes));
        }
        if buffer.len() > OVERHANG {
            let all = buffer.len() as u64;
            self.skipping = true;
            buffer.truncate(OVERHANG + 1);
            let span = self.give(buffer, closes);
            self.offset += all - span.bytes;
            return Some(span);
        }
        self.carry.append(buffer);
        None
    }

    fn give(&mut self, buffer: &[u8], closes: bool) -> Span {
        let span = Span { offset: self.offset, bytes: buffer.len() as u64, open_end: buffer.last().is_some_and(|b| *b != b'\n'), closes_open_line: closes };
        self.offset += span.bytes;
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &[u8], size: usize) -> (Vec<u8>, u64) {
        let mut blocks = StreamBlocks::new(Box::new(io::Cursor::new(text.to_vec())), size);
        let (mut all, mut buffer) = (Vec::new(), Vec::new());
        while blocks.next(&mut buffer).unwrap().is_some() {
            all.extend_from_slice(&buffer);
        }
        (all, blocks.bytes())
    }

    proptest! {
        #[test]
        fn blocks_of_any_size_hold_every_line_once(text in "[a\n]{0,300}", size in 1usize..64) {
            let (all, bytes) = whole(text.as_bytes(), size);
            prop_assert_eq!(bytes, text.len() as u64);
            prop_assert_eq!(all, text.into_bytes());
        }
    }

    #[test]
    fn an_endless_line_keeps_its_head_and_loses_no_line_behind_it() {
        let text = [vec![b'x'; 300_000], b"\nnext\n".to_vec()].concat();
        let (all, bytes) = whole(&text, 4096);
        assert_eq!(bytes, text.len() as u64);
        assert!(all.len() < 100_000 && all.ends_with(b"next\n"));
    }
}
