//! Blocks of a plain file by positioned reads. A block owns the lines that start in it.

use super::{OVERHANG, Span};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Size of a page of memory, or a part of one.
const PAGE: usize = 4096;

/// The blocks of one file, in order. The length is the one at opening: what is appended later is not looked at.
#[derive(Debug)]
pub struct FileBlocks {
    file: Arc<File>,
    len: u64,
    size: u64,
    next: u64,
}

/// One block to read.
#[derive(Debug, Clone)]
pub struct Block {
    file: Arc<File>,
    start: u64,
    end: u64,
    len: u64,
}

impl Block {
    /// Offset of the block in its file.
    pub fn start(&self) -> u64 {
        self.start
    }
}

impl FileBlocks {
    /// Blocks of `size` bytes of a file that is `len` bytes long.
    pub fn new(file: File, len: u64, size: usize) -> Self {
        Self { file: Arc::new(file), len, size: size.max(1) as u64, next: 0 }
    }
}

impl Iterator for FileBlocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let start = self.next;
        if start >= self.len {
            return None;
        }
        self.next = (start + self.size).min(self.len);
        Some(Block { file: Arc::clone(&self.file), start, end: self.next, len: self.len })
    }
}

/// Reads a block's own lines into `buffer` and returns where in it they stand and their place in the file. The buffer
/// only grows, so that it is not filled with zeros for every block.
pub fn read_block(block: &Block, buffer: &mut Vec<u8>) -> io::Result<(std::ops::Range<usize>, Span)> {
    // The byte before the block tells whether a line starts at its first byte.
    let lead = u64::from(block.start > 0);
    let from = block.start - lead;
    let base = place(buffer, from, (block.end - from) as usize + OVERHANG);
    let body = base + fill(&block.file, buffer, base, from, (block.end - from) as usize)?;
    let none = Span { offset: block.start, bytes: 0, open_end: false, closes_open_line: false };
    let mut closes = false;
    let own = if block.start == 0 {
        base
    } else {
        match memchr::memchr(b'\n', &buffer[base..body]) {
            Some(at) => {
                closes = at > 0;
                base + at + 1
            }
            None => return Ok((0..0, none)),
        }
    };
    if own >= body {
        return Ok((0..0, Span { closes_open_line: closes, ..none }));
    }
    let end = finish_last_line(block, buffer, body, from + (body - base) as u64)?;
    let open_end = buffer[end - 1] != b'\n';
    let span = Span { offset: from + (own - base) as u64, bytes: (end - own) as u64, open_end, closes_open_line: closes };
    Ok((own..end, span))
}

/// The last line that starts in the block may end behind it: reads up to [`OVERHANG`] bytes more, which stand from
/// `from` on in the file. Returns where the block's text ends in `buffer`.
fn finish_last_line(block: &Block, buffer: &mut Vec<u8>, body: usize, from: u64) -> io::Result<usize> {
    let mut step = 1024;
    let mut end = body;
    while buffer[end - 1] != b'\n' && end - body < OVERHANG {
        let at = from + (end - body) as u64;
        let want = step.min(OVERHANG - (end - body)).min(block.len.saturating_sub(at) as usize);
        let got = fill(&block.file, buffer, end, at, want)?;
        if got == 0 {
            break;
        }
        end += memchr::memchr(b'\n', &buffer[end..end + got]).map_or(got, |p| p + 1);
        step *= 4;
    }
    Ok(end)
}

/// Makes room for `want` bytes behind a place of the buffer that stands as far into a page of memory as `from` stands
/// into one of the file, and returns the place. Processors that copy with `rep movsb` take five times as long where the
/// target is a few bytes further into its page than the source (AMD Zen 3), and that is where an allocator puts it.
fn place(buffer: &mut Vec<u8>, from: u64, want: usize) -> usize {
    if buffer.len() < PAGE + want {
        buffer.resize(PAGE + want, 0);
    }
    (from as usize).wrapping_sub(buffer.as_ptr().addr()) % PAGE
}

/// Reads up to `want` bytes from `at` to `start` in the buffer; fewer where the file has become shorter.
fn fill(file: &File, buffer: &mut Vec<u8>, start: usize, at: u64, want: usize) -> io::Result<usize> {
    if buffer.len() < start + want {
        buffer.resize(start + want, 0);
    }
    let mut got = 0;
    while got < want {
        match file.read_at(&mut buffer[start + got..start + want], at + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &[u8], size: usize) -> (Vec<u8>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, text).unwrap();
        let mut all = Vec::new();
        let mut contiguous = true;
        let mut buffer = Vec::new();
        for block in FileBlocks::new(File::open(&path).unwrap(), text.len() as u64, size) {
            let (range, span) = read_block(&block, &mut buffer).unwrap();
            if !range.is_empty() {
                contiguous &= span.offset == all.len() as u64;
                all.extend_from_slice(&buffer[range]);
            }
        }
        (all, contiguous)
    }

    proptest! {
        #[test]
        fn blocks_of_any_size_hold_every_line_once(text in "[a\n]{0,300}", size in 1usize..64) {
            let (all, contiguous) = whole(text.as_bytes(), size);
            prop_assert!(contiguous);
            prop_assert_eq!(all, text.into_bytes());
        }
    }

    #[test]
    fn an_endless_line_keeps_its_head_and_loses_no_line_behind_it() {
        let text = [vec![b'x'; 300_000], b"\nnext\n".to_vec()].concat();
        let (all, _) = whole(&text, 4096);
        assert!(all.len() < 100_000);
        assert!(all.ends_with(b"next\n"));
    }
}
