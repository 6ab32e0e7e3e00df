//! Finds the identities of a text, in one pass over its words. What a word is, it says by its form (an address, a
//! token), by its place (a host in front of `:pid:tid [`, a user behind `/home/`), or because it was met before.

use super::names::Names;
use super::{fast, secret, words};
use ahash::AHashMap;
use std::ops::Range;

/// What kind of identity a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A host or pod, perhaps with its domain.
    Host,
    /// Folded hosts: `gpu[01-04]`.
    Hosts,
    /// A user.
    User,
    /// A directory of a path.
    Dir,
    /// An IPv4 address.
    V4,
    /// An IPv6 address or GID.
    V6,
    /// A GID as two integers.
    Halves,
    /// A MAC address.
    Mac,
    /// A GUID of a device.
    Guid,
    /// A UUID.
    Uuid,
    /// A long hex number that names a container.
    Id,
    /// A secret.
    Secret,
    /// A piece of an identity at the edge of a text that was cut.
    Torn,
}

/// Takes what was found, in order and without overlap.
pub trait Sink {
    /// `span` is an identity; `pid` is the process in whose header it stands, else 0.
    fn take(&mut self, span: Range<usize>, class: Class, pid: u32);
}

/// Longest line that is remembered, in bytes.
const LONGEST_MET: usize = 1000;

/// Lines remembered at once.
const MOST_MET: usize = 4096;

/// What was found in a line, from its start on, and the host of the last header behind it.
struct Met {
    spans: Vec<(Range<usize>, Class, u32)>,
    host: Vec<u8>,
}

/// Passes on what is found, and remembers it.
struct Tee<'s, S> {
    sink: &'s mut S,
    base: usize,
    spans: Vec<(Range<usize>, Class, u32)>,
}

impl<S: Sink> Sink for Tee<'_, S> {
    fn take(&mut self, span: Range<usize>, class: Class, pid: u32) {
        self.spans.push((span.start - self.base..span.end - self.base, class, pid));
        self.sink.take(span, class, pid);
    }
}

/// A scan over a stream of text.
#[derive(Debug, Default)]
pub struct Scanner {
    /// Inside a private key.
    in_key: bool,
    /// Host of the last header.
    host: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    Word,
    Slash,
    Backslash,
    Escape,
    Colon,
    Bracket,
}

const KINDS: [Kind; 256] = {
    let mut table = [Kind::Other; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = match b as u8 {
            // Letters of other scripts, too, but no typographic marks (U+2000 and up begin with E2).
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xe1 | 0xe3..=0xff => Kind::Word,
            b'/' => Kind::Slash,
            b'\\' => Kind::Backslash,
            0x1b => Kind::Escape,
            b':' => Kind::Colon,
            b'[' => Kind::Bracket,
            _ => Kind::Other,
        };
        b += 1;
    }
    table
};

/// A byte of a word.
pub fn is_word(b: u8) -> bool {
    KINDS[usize::from(b)] == Kind::Word
}

/// A byte of a word or of the joints within one.
pub fn in_chunk(b: u8) -> bool {
    is_word(b) || matches!(b, b'.' | b'-')
}

impl Scanner {
    /// Finds the identities of whole lines. `cut`: the text's last byte is not the end of what was written.
    pub fn text<S: Sink>(&mut self, text: &[u8], cut: bool, names: &Names, sink: &mut S) {
        let mut start = 0;
        // Start-ups say the same again and again. Known names change between texts, so it ends with this one.
        let mut met: AHashMap<&[u8], Met> = AHashMap::new();
        while start < text.len() {
            let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
            let line = &text[start..end];
            let edge = cut && end == text.len();
            if !self.in_key && !self.host.is_empty() && fast::call(line, &self.host) {
                sink.take(start..start + self.host.len(), Class::Host, 0);
            } else if let Some(met) = met.get(line).filter(|_| !self.in_key && !edge) {
                met.spans.iter().for_each(|(span, class, pid)| sink.take(start + span.start..start + span.end, *class, *pid));
                self.host.clone_from(&met.host);
            } else if self.in_key || edge || line.len() > LONGEST_MET || met.len() >= MOST_MET {
                self.line(line, start, edge, names, sink);
            } else {
                let mut tee = Tee { sink, base: start, spans: Vec::new() };
                self.line(line, start, false, names, &mut tee);
                let spans = tee.spans;
                if !self.in_key {
                    met.insert(line, Met { spans, host: self.host.clone() });
                }
            }
            start = end + 1;
        }
    }

    fn line<S: Sink>(&mut self, line: &[u8], base: usize, cut: bool, names: &Names, sink: &mut S) {
        let begins = memchr::memmem::find(line, b"-----BEGIN ").filter(|at| memchr::memmem::find(&line[*at..], b"PRIVATE KEY").is_some());
        if self.in_key || begins.is_some() {
            self.key_line(line, base, begins, sink);
            return;
        }
        let mut scan = Line { b: line, base, cut, names, sink, host: &mut self.host, prev: 0..0 };
        scan.run();
    }

    /// A line of a private key: all of it is secret, up to its end mark.
    fn key_line<S: Sink>(&mut self, line: &[u8], base: usize, begins: Option<usize>, sink: &mut S) {
        const END: &[u8] = b"PRIVATE KEY-----";
        let from = begins.unwrap_or(0);
        let inside = if begins.is_some() { from + 11 } else { from };
        let end = memchr::memmem::find(&line[inside..], b"-----END ").map(|at| inside + at);
        let stop = end.map_or(line.len(), |at| memchr::memmem::find(&line[at..], END).map_or(line.len(), |n| at + n + END.len()));
        // What comes in front of the block's first line is no part of it, but who writes a key writes anything.
        let span = if begins.is_some() { 0..line.len() } else { from..stop.max(line.len()) };
        self.in_key = end.is_none();
        if !span.is_empty() {
            sink.take(base + span.start..base + span.end, Class::Secret, 0);
        }
    }
}

/// The scan of one line.
pub struct Line<'a, S> {
    /// Its text.
    pub b: &'a [u8],
    /// Where it stands.
    pub base: usize,
    /// Its end is cut.
    pub cut: bool,
    /// What is known already.
    pub names: &'a Names,
    /// Takes what is found.
    pub sink: &'a mut S,
    /// Host of the last header.
    pub host: &'a mut Vec<u8>,
    /// The word before.
    pub prev: Range<usize>,
}

impl<S: Sink> Line<'_, S> {
    fn run(&mut self) {
        let mut i = self.front();
        while let Some(b) = self.b.get(i) {
            i = match KINDS[usize::from(*b)] {
                Kind::Other => i + 1,
                Kind::Word => self.chunk(i),
                Kind::Slash => self.slash(i),
                Kind::Backslash => self.escape(i),
                Kind::Escape => self.colour(i + 1).unwrap_or(i + 1),
                Kind::Bracket => self.colour(i).unwrap_or(i + 1),
                Kind::Colon => self.colon(i),
            };
        }
    }

    /// The byte at `i`, 0 behind the end.
    pub fn at(&self, i: usize) -> u8 {
        self.b.get(i).copied().unwrap_or(0)
    }

    /// The byte before `i`, 0 at the start.
    pub fn before(&self, i: usize) -> u8 {
        i.checked_sub(1).map_or(0, |p| self.at(p))
    }

    /// The text behind `i`.
    pub fn from(&self, i: usize) -> &[u8] {
        self.b.get(i..).unwrap_or_default()
    }

    /// Tells of an identity.
    pub fn take(&mut self, span: Range<usize>, class: Class) {
        if !span.is_empty() {
            self.sink.take(self.base + span.start..self.base + span.end, class, 0);
        }
    }

    /// End of the chunk that starts at `s`: without the dots and dashes of the sentence around it.
    pub fn chunk_end(&self, s: usize) -> usize {
        let mut end = s + self.from(s).iter().take_while(|b| in_chunk(**b)).count();
        while end > s && matches!(self.b[end - 1], b'.' | b'-') {
            end -= 1;
        }
        end
    }

    /// `\n`, `\"`, `\u001b[31m`: what follows the escape begins a word of its own.
    fn escape(&mut self, i: usize) -> usize {
        let letter = i + self.from(i).iter().take_while(|b| **b == b'\\').count();
        match self.at(letter) {
            b'u' if self.from(letter + 1).len() >= 4 && self.b[letter + 1..letter + 5].iter().all(u8::is_ascii_hexdigit) => {
                let end = letter + 5;
                if self.b[letter + 1..end].eq_ignore_ascii_case(b"001b") { self.colour(end).unwrap_or(end) } else { end }
            }
            // The letter may also belong to the word (a path of Windows, a quoted pattern).
            b'n' | b't' | b'r' | b'f' | b'b' if !self.names.has(&self.b[letter..self.chunk_end(letter).max(letter)]) => letter + 1,
            b'/' => self.slash(letter),
            b'"' | b'\'' => letter + 1,
            b'x' if self.from(letter + 1).starts_with(b"1b") => self.colour(letter + 3).unwrap_or(letter + 3),
            _ => letter,
        }
    }

    /// `[31m` behind an escape, whose escape byte may be lost.
    fn colour(&self, i: usize) -> Option<usize> {
        let inner = self.from(i).strip_prefix(b"[")?;
        let len = inner.iter().take(12).take_while(|b| b.is_ascii_digit() || **b == b';').count();
        matches!(inner.get(len), Some(b'm' | b'K')).then_some(i + len + 2)
    }

    /// `::1`
    fn colon(&mut self, i: usize) -> usize {
        if self.at(i + 1) == b':' && !is_word(self.before(i)) { self.colon_run(i).unwrap_or(i + 2) } else { i + 1 }
    }

    /// A chunk and what belongs to it; returns where to go on.
    fn chunk(&mut self, s: usize) -> usize {
        let e = self.chunk_end(s);
        let end = self.classify(s, e);
        self.prev = s..e;
        end.max(e).max(s + 1)
    }

    fn classify(&mut self, s: usize, e: usize) -> usize {
        if let Some(end) = self.address(s, e) {
            return end;
        }
        let next = self.at(e);
        if next == b':' && self.from(e).starts_with(b"://") {
            return self.url(s, e);
        }
        if let Some(end) = secret::token(self, s, e) {
            return end;
        }
        if next == b':'
            && let Some(pid) = self.header(s, e)
        {
            self.host.clear();
            self.host.extend_from_slice(&self.b[s..e]);
            self.sink.take(self.base + s..self.base + e, Class::Host, pid);
            return e;
        }
        if let Some(end) = self.placed(s, e) {
            return end;
        }
        if matches!(next, b'=' | b':' | b'"' | b'\'' | b'\\' | b' ' | b'(')
            && let Some(end) = self.keyed(s, e)
        {
            return end;
        }
        self.known(s, e);
        e
    }

    /// A chunk that was met before, whole or in part.
    pub fn known(&mut self, s: usize, e: usize) {
        let chunk = &self.b[s..e];
        let slashed = self.before(s) == b'/' || self.at(e) == b'/';
        let fits = |class: Class| class != Class::Dir || slashed;
        if let Some(class) = self.names.get(chunk).filter(|c| fits(*c)) {
            self.take(s..e, class);
            return;
        }
        if words::has_tld(chunk) && !words::public(chunk) && !words::file(chunk) || cloud(chunk) {
            self.take(s..e, Class::Host);
            return;
        }
        if chunk.iter().any(|b| matches!(b, b'.' | b'-' | b'_')) {
            self.parts(s, e);
        }
        let joints = self.from(e).iter().take_while(|b| matches!(b, b'.' | b'-')).count();
        let rest = self.from(e + joints);
        if self.cut && rest.is_empty() || rest == "…".as_bytes() {
            self.edge(s, e + joints);
        }
    }

    /// Known names that are joined with others: `nccl.gpu-01.77.log`, `gpu-01_rank0`, `gpu-01.cluster.local`.
    fn parts(&mut self, s: usize, e: usize) {
        let joints: Vec<usize> = (s..e).filter(|i| matches!(self.b[*i], b'.' | b'-' | b'_')).take(24).collect();
        let mut from = s;
        for start in std::iter::once(s).chain(joints.iter().map(|j| j + 1)) {
            if start < from {
                continue;
            }
            let ends = joints.iter().copied().filter(|j| *j > start).chain(std::iter::once(e));
            let Some((end, class)) = ends.rev().find_map(|end| Some((end, self.names.get(&self.b[start..end]).filter(|c| *c != Class::Dir)?))) else { continue };
            let domain = class == Class::Host && self.at(end) == b'.' && domain(&self.b[end + 1..e]);
            let end = if domain { e } else { end };
            self.take(start..end, class);
            from = end;
        }
    }

    /// The piece of a name that a cut left.
    fn edge(&mut self, s: usize, e: usize) {
        let numeric = self.b[s..e].iter().all(|b| b.is_ascii_digit() || *b == b'.') && self.b[s..e].contains(&b'.');
        if numeric || self.names.begins(&self.b[s..e]) {
            self.take(s..e, Class::Torn);
        }
    }
}

/// `ip-10-1-2-3` of a cloud.
fn cloud(chunk: &[u8]) -> bool {
    let numbers = |t: &[u8]| t.split(|b| *b == b'-').take(4).filter(|n| (1..=3).contains(&n.len()) && n.iter().all(u8::is_ascii_digit)).count();
    chunk.strip_prefix(b"ip-").is_some_and(|t| numbers(t.split(|b| *b == b'.').next().unwrap_or(t)) == 4)
}

/// Labels that may stand behind a host's own.
fn domain(labels: &[u8]) -> bool {
    !words::file(&[b"x.", labels].concat())
        && labels.split(|b| *b == b'.').all(|l| l.first().is_some_and(u8::is_ascii_alphabetic) && l.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-'))
}
