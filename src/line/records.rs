//! Cuts a block into records: the fast path for lines whose prefix was seen before, and for plain lines.

use super::cutter::Cutter;
use super::header::{Header, Level, read};
use super::scan::{trim, trim_start};
use super::visitor::{Known, MAX_LINE, SLOTS, Visitor};
use super::wrap::rank;
use super::{Record, Wrap};
use bumpalo::Bump;
use memchr::memmem::Finder;

/// Calls `sink` for every record of `block`, in order of the lines that end them, and returns the number of line
/// ends. `block` is whole lines; the last one may lack its line end. Text that had to be unescaped or cleaned lives
/// in `arena`.
pub fn records<'a>(block: &'a [u8], arena: &'a Bump, sink: impl FnMut(Record<'a>)) -> u32 {
    cut(block, arena, true, sink)
}

/// [`records`] for a visitor, which may take lines of a known prefix itself.
pub fn visit<'a>(block: &'a [u8], arena: &'a Bump, visitor: impl Visitor<'a>) -> u32 {
    cut(block, arena, true, visitor)
}

/// [`records`]; without `fast`, every line takes the way of the reference grammar.
pub(super) fn cut<'a>(block: &'a [u8], arena: &'a Bump, fast: bool, sink: impl Visitor<'a>) -> u32 {
    let mut cutter = Cutter::new(arena, sink);
    let mut fast_path = fast.then(|| Fast::new(block));
    let (mut start, mut line) = (0, 0);
    while start < block.len() {
        if let Some(fast) = &mut fast_path
            && let Some(known) = fast.known(line, start)
            && let Some(taken) = cutter.offer(&known, &block[known.message..])
        {
            let end = known.message + taken;
            line += u32::from(end < block.len());
            start = end + 1;
            continue;
        }
        let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |p| start + p);
        cutter.begin(line, start);
        match fast_path.as_mut().and_then(|f| f.line(start, end)) {
            Some(Quick::Empty) => {}
            Some(Quick::Headed(seen, text)) => cutter.headed(text, seen.wrap, seen.header, (seen.skip, seen.prefix.len())),
            Some(Quick::Plain(text)) => cutter.plain(text),
            None => cutter.line(&block[start..end]),
        }
        cutter.end();
        line += u32::from(end < block.len());
        start = end + 1;
    }
    cutter.finish();
    line
}

/// Next place of something in a block; each byte is searched once.
struct Cursor<S> {
    search: S,
    /// `None` before the first search.
    next: Option<usize>,
}

impl<S: Fn(&[u8]) -> Option<usize>> Cursor<S> {
    fn new(search: S) -> Self {
        Self { search, next: None }
    }

    fn at(&mut self, block: &[u8], from: usize) -> usize {
        match self.next {
            Some(next) if next >= from => next,
            _ => {
                let next = (self.search)(&block[from..]).map_or(usize::MAX, |p| from + p);
                self.next = Some(next);
                next
            }
        }
    }
}

/// What the fast path made of a line.
enum Quick<'a> {
    /// Nothing on it.
    Empty,
    /// A known prefix and the whole line.
    Headed(Seen<'a>, &'a [u8]),
    /// A line without header and wrapper.
    Plain(&'a [u8]),
}

/// A prefix seen in this block.
#[derive(Clone, Copy)]
struct Seen<'a> {
    prefix: &'a [u8],
    /// The end of the thread id and the device, which differ most.
    tail: [u8; 8],
    wrap: Wrap<'a>,
    header: Header<'a>,
    /// Length of the wrapper in the prefix.
    skip: usize,
}

impl Seen<'_> {
    /// Whether `text` starts with it. The tail tells most others apart at once.
    #[inline(always)]
    fn starts(&self, text: &[u8]) -> bool {
        let len = self.prefix.len();
        text.len() >= len && text[len - INFO.len() - 8..len - INFO.len()] == self.tail && text[..len] == *self.prefix
    }
}

/// Prefixes end with this; only INFO lines repeat often enough.
const INFO: &[u8] = b" NCCL INFO ";

struct Fast<'a, M> {
    block: &'a [u8],
    /// `[FATAL ERROR]`.
    fatal: Finder<'static>,
    /// `CCL `: NCCL's and RCCL's levels and version lines.
    mark: Cursor<M>,
    seen: [Option<Seen<'a>>; SLOTS],
    last: usize,
    turn: usize,
    generation: u32,
}

type Search<'f> = Box<dyn Fn(&[u8]) -> Option<usize> + 'f>;

impl<'a> Fast<'a, Search<'static>> {
    fn new(block: &'a [u8]) -> Self {
        let finder = |needle: &'static [u8]| -> Search<'static> {
            let finder = Finder::new(needle);
            Box::new(move |text| finder.find(text))
        };
        Self { block, mark: Cursor::new(finder(b"CCL ")), fatal: Finder::new(b"[FATAL ERROR]:"), seen: [None; SLOTS], last: 0, turn: 0, generation: 0 }
    }

    /// The prefix at `start`, if it was seen before.
    #[inline(always)]
    fn known(&mut self, line: u32, start: usize) -> Option<Known<'a, '_>> {
        let text = &self.block[start..];
        if !self.seen[self.last % SLOTS].as_ref().is_some_and(|seen| text.starts_with(seen.prefix)) {
            self.last = self.seen.iter().position(|s| s.as_ref().is_some_and(|s| s.starts(text)))?;
        }
        let seen = self.seen[self.last % SLOTS].as_ref()?;
        let message = start + seen.prefix.len();
        Some(Known { slot: self.last, generation: self.generation, wrap: &seen.wrap, header: &seen.header, block: self.block, line, offset: start, message })
    }

    /// Reads the line in `start..end` if it is one of the plain kinds.
    fn line(&mut self, start: usize, end: usize) -> Option<Quick<'a>> {
        if start == end {
            return Some(Quick::Empty);
        }
        let end = end - usize::from(self.block[end - 1] == b'\r');
        let text = &self.block[start..end];
        // ESC, CR and NUL ask for cleaning.
        if text.len() > MAX_LINE || memchr::memchr3(0x1b, b'\r', 0, text).is_some() || self.fatal.find(text).is_some() {
            return None;
        }
        if self.mark.at(self.block, start) >= end {
            return is_plain(text).then_some(Quick::Plain(text));
        }
        let seen = self.seen(text)?;
        let at = start + seen.prefix.len();
        if self.mark.at(self.block, at) < end {
            return None;
        }
        Some(Quick::Headed(seen, text))
    }

    /// The known prefix of `text`; reads and remembers a new one.
    fn seen(&mut self, text: &'a [u8]) -> Option<Seen<'a>> {
        let hit = |seen: &Seen<'a>| seen.starts(text);
        if let Some(seen) = self.seen[self.last].filter(|s| hit(s)) {
            return Some(seen);
        }
        if let Some(at) = self.seen.iter().position(|s| s.as_ref().is_some_and(hit)) {
            self.last = at;
            return self.seen[at];
        }
        // A rank in front (`7: `, `[1,7]<stdout>:`) is a part of the prefix.
        let mut wrap = Wrap::default();
        let body = rank(trim_start(text), &mut wrap).map_or(text, trim_start);
        let plain = |h: &Header<'_>| h.level == Level::Info && h.time.is_none() && h.pid != 0 && h.file.is_empty() && h.func.is_empty();
        let read = read(body).filter(|r| !r.torn && plain(&r.header))?;
        let prefix = &text[..text.len() - read.msg.len()];
        if !prefix.ends_with(INFO) {
            return None;
        }
        let tail = prefix[..prefix.len() - INFO.len()].last_chunk::<8>().copied()?;
        let seen = Seen { prefix, tail, wrap, header: read.header, skip: text.len() - body.len() };
        (self.last, self.turn) = (self.turn, (self.turn + 1) % SLOTS);
        self.seen[self.last] = Some(seen);
        self.generation += 1;
        Some(seen)
    }
}

/// Whether a line without any mark of the library can hold no wrapper. It may say no to harmless lines, but never
/// yes to one that the grammar would peel.
fn is_plain(text: &[u8]) -> bool {
    let body = trim(text);
    match body.first() {
        None => return true,
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'#' | b'*' | b'=' | b'/' | b'_' | b'.' | b'~' | b'-' | b'+' | b'\'' | b'<' | b'^' | b'}') => {}
        Some(_) => return false,
    }
    // `[` opens devices, ranks and colours; `|` closes names of services and bars.
    if memchr::memchr2(b'[', b'|', body).is_some() {
        return false;
    }
    let blank = body.iter().take(10).position(|b| *b == b' ' || *b == b'\t');
    let Some(blank) = blank else { return true };
    let behind = trim_start(&body[blank..]);
    // `Nov 30 …`, `E1130 12:00:00`, `INFO 11-30 …`, `Mon Nov 30 …`.
    !(behind.first().is_some_and(u8::is_ascii_digit) || blank == 3 && body[0].is_ascii_uppercase())
}
