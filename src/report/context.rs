//! The lines around a piece of evidence, read from its file if that is still what was analysed.

use crate::rules::Evidence;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Lines shown before and after.
const LINES: usize = 3;

/// Bytes looked at on each side.
const REACH: u64 = 8 * 1024;

/// Longest line that is shown, in characters.
const MAX_LINE: usize = 400;

/// A line's neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Lines before, in order.
    pub before: Vec<String>,
    /// Lines after, in order.
    pub after: Vec<String>,
}

/// Gives the lines around a piece of evidence.
pub trait Context: std::fmt::Debug {
    /// The lines; an error says in words why they are left out.
    fn around(&self, evidence: &Evidence) -> Result<Surroundings, &'static str>;
}

/// Reads them from the files that the evidence names.
#[derive(Debug, Clone, Copy)]
pub struct FromFiles;

impl Context for FromFiles {
    fn around(&self, evidence: &Evidence) -> Result<Surroundings, &'static str> {
        surroundings(evidence, &|line| line.to_owned())
    }
}

/// Reads them; `show` makes of a line what may be shown of it.
pub fn surroundings(evidence: &Evidence, show: &dyn Fn(&str) -> String) -> Result<Surroundings, &'static str> {
    if evidence.file == "-" {
        return Err("it came through a pipe");
    }
    // A pipe or device must not be opened: it could block for ever.
    if !std::fs::metadata(&evidence.file).is_ok_and(|m| m.is_file()) {
        return Err("its file is not there any more");
    }
    let from = evidence.offset.saturating_sub(REACH);
    let bytes = window(&evidence.file, from, evidence.offset - from + 2 * REACH).map_err(|_| "its file cannot be read")?;
    let at = usize::try_from(evidence.offset - from).unwrap_or(usize::MAX);
    let (before, rest) = bytes.split_at_checked(at).ok_or(CHANGED)?;
    let (line, after) = match memchr::memchr(b'\n', rest) {
        Some(end) => rest.split_at(end + 1),
        None => (rest, &[][..]),
    };
    let same = String::from_utf8_lossy(line).trim_end().contains(evidence.text.trim_end()) && !evidence.text.trim().is_empty();
    let starts_a_line = before.last().is_none_or(|b| *b == b'\n');
    if !same || !starts_a_line {
        return Err(CHANGED);
    }
    let whole = if from > 0 { memchr::memchr(b'\n', before).map_or(&[][..], |cut| before.get(cut + 1..).unwrap_or_default()) } else { before };
    let mut above: Vec<String> = lines(whole, show).rev().take(LINES).collect();
    above.reverse();
    Ok(Surroundings { before: above, after: lines(after, show).take(LINES).collect() })
}

const CHANGED: &str = "its file is packed or not what was analysed";

fn window(path: &str, from: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn lines(bytes: &[u8], show: &dyn Fn(&str) -> String) -> impl DoubleEndedIterator<Item = String> {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let parts: Vec<&[u8]> = if text.is_empty() { Vec::new() } else { text.split(|b| *b == b'\n').collect() };
    parts.into_iter().map(move |l| super::view::shorten(show(&String::from_utf8_lossy(l)).trim_end(), MAX_LINE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn evidence(file: &str, offset: u64, text: &str) -> Evidence {
        Evidence { file: file.to_owned(), line: 1, offset, rank: None, text: text.to_owned() }
    }

    #[test]
    fn neighbours_of_an_unchanged_line_only() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "one\ntwo\nthree\nfour\nfive").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let surroundings = |e: &Evidence| surroundings(e, &|line| line.to_owned());
        let found = surroundings(&evidence(&path, 8, "three")).unwrap();
        assert_eq!(found, Surroundings { before: vec!["one".into(), "two".into()], after: vec!["four".into(), "five".into()] });
        for (offset, text) in [(8, "drei"), (9, "hree"), (400, "three"), (8, "")] {
            assert_eq!(surroundings(&evidence(&path, offset, text)), Err(CHANGED), "{offset} {text}");
        }
        assert!(surroundings(&evidence("-", 0, "x")).is_err());
        assert!(surroundings(&evidence("/nonexistent/x.log", 0, "x")).is_err());
    }
}
