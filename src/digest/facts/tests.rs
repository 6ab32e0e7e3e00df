//! Outputs as tools print them, read through the whole way from bytes to facts.

use super::*;
use crate::digest::{Folder, map};
use crate::input::Span;
use bumpalo::Bump;

/// The facts that a text shows; the text is also read in pieces of every odd size, which must not matter.
pub fn read(text: &str) -> Vec<HostFacts> {
    let whole = fold(text, text.len());
    for size in [1, 2, 3, 7] {
        assert_eq!(fold(text, size), whole, "cut every {size} lines");
    }
    whole
}

/// The facts of the only host.
pub fn one(text: &str) -> HostFacts {
    let mut hosts = read(text);
    assert_eq!(hosts.len(), 1, "{hosts:#?}");
    hosts.remove(0)
}

fn fold(text: &str, lines: usize) -> Vec<HostFacts> {
    let mut folder = Folder::new(0, "facts.txt".to_owned());
    let mut offset = 0;
    let pieces: Vec<&str> = text.split_inclusive('\n').collect();
    for piece in pieces.chunks(lines.max(1)) {
        let piece = piece.concat();
        let arena = Bump::new();
        let bytes = piece.len() as u64;
        folder.fold(&map(piece.as_bytes(), &arena), Span { offset, bytes, open_end: !piece.ends_with('\n'), closes_open_line: false });
        offset += bytes;
    }
    folder.finish(offset).0.facts
}

/// The text as a careless paste shows it: without indentation, runs of blanks as one.
pub fn collapsed(text: &str) -> String {
    text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}
