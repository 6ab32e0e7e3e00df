//! Cuts bytes that arrive piecemeal into whole lines.

use super::Stream;
use crate::input::OVERHANG;

/// The unfinished last line of one source.
#[derive(Debug, Default)]
pub struct Lines {
    /// Text behind the last line end; at most [`OVERHANG`] bytes between two calls.
    carry: Vec<u8>,
    /// Inside an over-long line whose head was folded: everything up to its end is skipped.
    skipping: bool,
}

impl Lines {
    /// Folds the lines that end in `chunk` into `stream` and keeps the rest.
    pub fn feed(&mut self, mut chunk: &[u8], stream: &mut Stream) {
        if self.skipping {
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                stream.skip(chunk.len());
                return;
            };
            self.skipping = false;
            stream.skip(end + 1);
            stream.close_line();
            chunk = &chunk[end + 1..];
        }
        if let Some(last) = memchr::memrchr(b'\n', chunk) {
            let mut start = 0;
            if !self.carry.is_empty() {
                start = memchr::memchr(b'\n', chunk).map_or(0, |first| first + 1);
                self.carry.extend_from_slice(&chunk[..start]);
                stream.fold(&self.carry);
                self.carry.clear();
            }
            stream.fold(&chunk[start..=last]);
            chunk = &chunk[last + 1..];
        }
        self.carry.extend_from_slice(chunk);
        if self.carry.len() > OVERHANG {
            stream.fold(&self.carry[..=OVERHANG]);
            stream.skip(self.carry.len() - OVERHANG - 1);
            self.carry = Vec::new();
            self.skipping = true;
        }
    }

    /// The unfinished line.
    pub fn rest(&self) -> &[u8] {
        &self.carry
    }

    /// No more will come: the unfinished line counts as it stands.
    pub fn end(&mut self, stream: &mut Stream) {
        if !self.carry.is_empty() {
            stream.fold(&self.carry);
        }
        if !self.carry.is_empty() || self.skipping {
            // What another file writes under the same name begins a line of its own.
            stream.close_line();
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(n: usize) -> String {
        format!("node1:10{n}:20{n} [0] NCCL INFO Using network Socket\n")
    }

    fn folded(pieces: &[&[u8]]) -> (String, u64, u64) {
        let mut stream = Stream::new(0, "x".to_owned());
        let mut lines = Lines::default();
        for piece in pieces {
            lines.feed(piece, &mut stream);
        }
        let (info, processes) = stream.snapshot(&[lines.rest()]);
        (format!("{:?}", processes.iter().map(|p| (&p.host, p.pid, &p.first.at, &p.last.at, p.records)).collect::<Vec<_>>()), info.bytes, info.lines)
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same(count in 1usize..6, cuts in proptest::collection::vec(0usize..400, 0..8), open in any::<bool>()) {
            let mut text: String = (0..count).map(line).collect();
            if open {
                text.pop();
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            prop_assert_eq!(folded(&pieces), folded(&[text.as_bytes()]));
        }
    }

    #[test]
    fn an_endless_line_takes_no_memory_and_hides_no_line_behind_it() {
        let mut stream = Stream::new(0, "x".to_owned());
        let mut lines = Lines::default();
        for _ in 0..100 {
            lines.feed(&[b'x'; 9_000], &mut stream);
            assert!(lines.rest().len() <= OVERHANG);
        }
        lines.feed(b"\n", &mut stream);
        lines.feed(line(1).as_bytes(), &mut stream);
        let (info, processes) = stream.snapshot(&[]);
        assert_eq!((info.bytes, info.lines, processes.len()), (900_001 + line(1).len() as u64, 2, 1));
        assert_eq!((processes[0].first.at.line, processes[0].first.at.offset), (2, 900_001));
    }
}
