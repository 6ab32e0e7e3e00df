//! Wrappers: what launchers, log drivers and people put in front of a line. One file per family; [`Peel::step`] takes
//! one wrapper off, and the caller repeats it until nothing more comes off.

mod actor;
mod ansi;
mod bar;
mod container;
mod front;
mod json;
mod launcher;
mod logger;

use super::Time;
use super::scan::{trim, trim_start};

pub(super) use ansi::{clean, clean_lost};
pub use front::front;
pub(super) use json::{Fragment, Unfolded, fragment, object, report};
pub(super) use launcher::rank;

/// What kind of number a wrapper's rank is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankHint {
    /// Rank in the whole job (`[rank3]:`, `srun -l`, `[1,3]<stdout>:`).
    Global(u32),
    /// Rank within its node or group (`[default3]:`, `Worker_TP3`).
    Local(u32),
}

/// What the wrappers of one record said. Hints only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wrap<'a> {
    /// Rank named by a wrapper.
    pub rank: Option<RankHint>,
    /// Process id named by a wrapper (Ray, vLLM, journald).
    pub pid: Option<u32>,
    /// Host, pod or node address named by a wrapper; empty if none.
    pub host: &'a [u8],
    /// What tells sources in one stream apart: actor, pod/container, compose service; empty if none.
    pub label: &'a [u8],
    /// The innermost time that stood in front of the text.
    pub time: Option<Time>,
    /// `N` of Ray's `[repeated Nx across cluster]`: other ranks said the same and are hidden.
    pub repeated: u32,
}

/// Which of two streams a container's log driver named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// `stderr`.
    pub err: bool,
    /// The line goes on in the stream's next chunk.
    pub partial: bool,
}

/// The state of peeling one piece.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Peel<'a> {
    /// What the wrappers said so far.
    pub wrap: Wrap<'a>,
    /// Set by a wrapper that cuts lines into chunks.
    pub chunk: Option<Chunk>,
    /// The piece's first byte is in the middle of something.
    pub torn_start: bool,
    /// The piece's last byte is in the middle of something.
    pub torn_end: bool,
}

impl<'a> Peel<'a> {
    /// Takes one wrapper off the front of `text`, which starts with no blank; `None` if there is none.
    pub fn step(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let rest = match *text.first()? {
            b'[' => launcher::bracket(text, &mut self.wrap).or_else(|| container::pod(text, &mut self.wrap)).or_else(|| logger::stamp(text, self)),
            b'(' => actor::peel(text, &mut self.wrap).map(|rest| actor::suffix(rest, &mut self.wrap)),
            b'0'..=b'9' => logger::stamp(text, self).or_else(|| {
                // A second number is a part of the text: `3: 2: eth0: <UP>`.
                if self.wrap.rank.is_none() { launcher::task(text, &mut self.wrap) } else { None }
            }),
            b'>' => quote(text),
            b'|' => container::table(text, self),
            b'A'..=b'Z' => {
                logger::stamp(text, self).or_else(|| logger::level_first(text, &mut self.wrap)).or_else(|| bar::peel(text)).or_else(|| container::compose(text, &mut self.wrap))
            }
            b'a'..=b'z' => container::compose(text, &mut self.wrap).or_else(|| bar::peel(text)),
            _ => None,
        };
        rest.or_else(|| if text[0].is_ascii_alphabetic() { None } else { bar::peel(text) }).map(trim_start)
    }
}

/// `> ` of a mail or an issue. The mark may repeat; a blank or another mark follows.
fn quote(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b">")?;
    matches!(rest.first(), Some(b' ' | b'>') | None).then_some(rest)
}

/// `text` without the quote of Python or JSON that opens it.
pub(super) fn unquote_start(text: &[u8]) -> &[u8] {
    let text = trim_start(text);
    let text = text.strip_prefix(b"b").filter(|t| matches!(t.first(), Some(b'\'' | b'"'))).unwrap_or(text);
    text.strip_prefix(b"'").or_else(|| text.strip_prefix(b"\"")).unwrap_or(text)
}

/// `text` without one pair of quotes around it, and their comma.
pub(super) fn unquote(text: &[u8]) -> &[u8] {
    let text = unquote_start(trim(text));
    let text = text.strip_suffix(b",").unwrap_or(text);
    text.strip_suffix(b"'").or_else(|| text.strip_suffix(b"\"")).unwrap_or(text)
}
