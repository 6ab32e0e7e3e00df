//! The reference way of a line: control sequences, wrappers, header, glued and torn records.

use super::Record;
use super::header::{Header, Level, MARKS, Read, is_rccl, read, start_of};
use super::scan::{trim, trim_start};
use super::time::Time;
use super::visitor::{Known, MAX_LINE, Visitor};
use super::wrap::{Chunk, Fragment, Peel, Unfolded, Wrap, clean, clean_lost, fragment, front, object, report, unquote, unquote_start};
use bumpalo::Bump;
use bumpalo::collections::Vec;
use memchr::memmem;

/// Most wrappers that are taken off one line.
const MAX_WRAPPERS: usize = 16;
/// Deepest nesting of JSON in JSON.
const MAX_DEPTH: u32 = 4;

/// A line that its log driver cut into chunks.
struct Open<'a> {
    line: u32,
    offset: u32,
    /// The first chunk with its wrappers, then the rest.
    text: Vec<'a, u8>,
    /// Where the first chunk's content starts in `text`.
    body: usize,
    peel: Peel<'a>,
}

/// Cuts lines into records. Its state spans lines only where the text itself does.
pub(super) struct Cutter<'a, F> {
    arena: &'a Bump,
    sink: F,
    line: u32,
    offset: u32,
    /// The line before this one began with an NCCL header, or may have.
    follows: bool,
    /// This line holds an NCCL header.
    has_header: bool,
    /// Unfinished lines of the two streams of a container.
    open: [Option<Open<'a>>; 2],
    /// Time of a pretty-printed event and the line it stood on.
    stamp: Option<(u32, Time)>,
}

/// A piece of a line on its way: as it stood, and without control sequences.
#[derive(Clone, Copy)]
struct Piece<'a> {
    raw: &'a [u8],
    body: &'a [u8],
    depth: u32,
    /// Colours without ESC were taken out already.
    cleaned: bool,
}

impl<'a, F: Visitor<'a>> Cutter<'a, F> {
    pub fn new(arena: &'a Bump, sink: F) -> Self {
        Self { arena, sink, line: 0, offset: 0, follows: true, has_header: false, open: [None, None], stamp: None }
    }

    /// A physical line begins.
    pub fn begin(&mut self, line: u32, offset: usize) {
        (self.line, self.offset, self.has_header) = (line, offset as u32, false);
    }

    /// The physical line is done.
    pub fn end(&mut self) {
        self.follows = self.has_header;
    }

    /// Offers a line with a known prefix to the visitor itself: `rest` is the block from its message on. Returns the
    /// length of the message that it took.
    #[inline(always)]
    pub fn offer(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        let taken = self.sink.quick(known, rest)?;
        self.follows = true;
        Some(taken)
    }

    /// The block is done: what the log driver did not finish is cut.
    pub fn finish(&mut self) {
        for stream in 0..2 {
            if let Some(open) = self.open[stream].take() {
                self.close(open, true);
            }
        }
    }

    /// A record of the plain shape: where header and message start in `text`.
    pub fn headed(&mut self, text: &'a [u8], wrap: Wrap<'a>, header: Header<'a>, (head, msg): (usize, usize)) {
        self.has_header = true;
        self.emit(text, wrap, Some(header), &text[msg..], (false, is_cut(text.len() - head, &header)));
    }

    /// A line without header and wrapper.
    pub fn plain(&mut self, text: &'a [u8]) {
        self.emit(text, Wrap::default(), None, text, (false, false));
    }

    fn emit(&mut self, text: &'a [u8], wrap: Wrap<'a>, mut header: Option<Header<'a>>, msg: &'a [u8], torn: (bool, bool)) {
        let mut msg = trim(msg);
        if msg.first() == Some(&b'/')
            && let Some(header) = &mut header
        {
            (msg, header.rccl) = short_trace(msg, header.rccl);
        }
        if msg.is_empty() && header.is_none() {
            return;
        }
        self.sink.record(Record { line: self.line, offset: self.offset, text, wrap, header, msg, torn_start: torn.0, torn_end: torn.1, follows_nccl: self.follows });
    }

    /// Any line, without its line end.
    pub fn line(&mut self, line: &'a [u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let torn_end = line.len() > MAX_LINE;
        let line = line.get(..MAX_LINE).unwrap_or(line);
        self.pieces(line, line, Peel { torn_end, ..Peel::default() }, 0);
    }

    /// Splits at carriage returns, line ends and NUL bytes. What touches a NUL is torn: a hole in a file, or a
    /// message of NCCL 2.13 … 2.19 that ran into foreign memory.
    fn pieces(&mut self, raw: &'a [u8], text: &'a [u8], peel: Peel<'a>, depth: u32) {
        let mut start = 0;
        let mut after_nul = false;
        loop {
            let end = memchr::memchr3(b'\r', b'\n', 0, &text[start..]).map_or(text.len(), |p| start + p);
            let nul = text.get(end) == Some(&0);
            if end > start {
                let whole = start == 0 && end == text.len();
                let mut peel = peel;
                peel.torn_start |= after_nul;
                peel.torn_end = nul || (peel.torn_end && end == text.len());
                let part = &text[start..end];
                let piece = Piece { raw: if whole { raw } else { part }, body: clean(part, self.arena), depth, cleaned: false };
                self.piece(piece, peel);
            }
            after_nul = nul;
            start = end + 1;
            if start > text.len() {
                return;
            }
        }
    }

    fn piece(&mut self, piece: Piece<'a>, peel: Peel<'a>) {
        self.peeled(piece, trim_start(piece.body), peel);
    }

    /// Takes wrappers off until a header or nothing comes.
    fn peeled(&mut self, piece: Piece<'a>, body: &'a [u8], mut peel: Peel<'a>) {
        let mut rest = body;
        for _ in 0..MAX_WRAPPERS {
            if let Some(header) = read(rest) {
                return self.found(piece, rest, header, peel);
            }
            let Some(next) = peel.step(rest) else { break };
            rest = next;
            if let Some(chunk) = peel.chunk.take()
                && (chunk.partial || self.open[usize::from(chunk.err)].is_some())
            {
                return self.chunk(piece, rest, chunk, peel);
            }
        }
        if piece.depth < MAX_DEPTH && self.unfold(piece, rest, peel) {
            return;
        }
        if !piece.cleaned {
            let bare = clean_lost(rest, self.arena);
            if bare.len() < rest.len() {
                return self.peeled(Piece { cleaned: true, ..piece }, trim_start(bare), peel);
            }
        }
        // Only a device, a rank or a mark of the library can make a header of what is left.
        let hope = memchr::memchr(b'[', rest).is_some() || MARKS[0].find(rest).is_some() || memmem::find(rest, b"RCCL version ").is_some();
        if hope && (self.behind_front(piece, rest, peel) || self.split_literal(rest, peel) || self.glued(piece, rest, peel)) {
            return;
        }
        self.emit(piece.raw, peel.wrap, None, rest, (peel.torn_start, peel.torn_end));
    }

    /// JSON, or a line of a JSON document.
    fn unfold(&mut self, piece: Piece<'a>, rest: &'a [u8], mut peel: Peel<'a>) -> bool {
        let text = match rest.first() {
            Some(b'{') => {
                let Some(Unfolded { text, chunk, torn }) = object(rest, self.arena, &mut peel.wrap) else {
                    let Some(text) = report(rest, self.arena) else { return false };
                    self.pieces(text, text, peel, piece.depth + 1);
                    return true;
                };
                peel.torn_end |= torn;
                if let Some(chunk) = chunk
                    && (chunk.partial || self.open[usize::from(chunk.err)].is_some())
                {
                    self.chunk(piece, text, chunk, peel);
                    return true;
                }
                text
            }
            Some(b'"') => match fragment(rest, self.arena) {
                Some(Fragment::Time(time)) => {
                    self.stamp = Some((self.line, time));
                    return false;
                }
                Some(Fragment::Text(text)) => {
                    let before = self.stamp.filter(|s| s.0 + 1 == self.line).map(|s| s.1);
                    peel.wrap.time = before.or(peel.wrap.time);
                    text
                }
                None => return false,
            },
            _ => return false,
        };
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        // One line within is quoted as it stands in the file; of several, each is quoted by itself.
        self.pieces(if text.contains(&b'\n') { text } else { piece.raw }, text, peel, piece.depth + 1);
        true
    }

    /// A chunk of a line that the log driver cut.
    fn chunk(&mut self, piece: Piece<'a>, rest: &'a [u8], chunk: Chunk, peel: Peel<'a>) {
        let stream = usize::from(chunk.err);
        let mut open = if let Some(mut open) = self.open[stream].take() {
            open.text.extend_from_slice(rest);
            open
        } else {
            // The wrappers stay in front of what is quoted, where the content stands at the end of the piece.
            let front = piece.raw.len().checked_sub(rest.len()).filter(|n| piece.raw[*n..] == *rest).unwrap_or(0);
            let mut text = Vec::with_capacity_in(front + rest.len() * 2, self.arena);
            text.extend_from_slice(&piece.raw[..front]);
            text.extend_from_slice(rest);
            Open { line: self.line, offset: self.offset, text, body: front, peel }
        };
        let long = open.text.len() > MAX_LINE;
        open.text.truncate(MAX_LINE);
        if chunk.partial {
            open.peel.torn_end |= long;
            self.open[stream] = Some(open);
        } else {
            self.close(open, long);
        }
    }

    /// All chunks of a line are there, or no more will come.
    fn close(&mut self, open: Open<'a>, torn_end: bool) {
        let here = (self.line, self.offset);
        (self.line, self.offset) = (open.line, open.offset);
        let text: &'a [u8] = open.text.into_bump_slice();
        let mut peel = open.peel;
        peel.chunk = None;
        peel.torn_end |= torn_end;
        let body = text[open.body.min(text.len())..].trim_ascii_end();
        self.pieces(text, body, peel, MAX_DEPTH - 1);
        (self.line, self.offset) = here;
    }

    /// A header, or a rank's mark, behind wrappers that are not believed alone.
    fn behind_front(&mut self, piece: Piece<'a>, rest: &'a [u8], peel: Peel<'a>) -> bool {
        let mut peel = peel;
        let mut rest = rest;
        let mut believed = false;
        for _ in 0..MAX_WRAPPERS {
            let rank = rest.starts_with(b"[rank") || rest.starts_with(b"[default");
            let next = match peel.step(rest) {
                Some(next) => {
                    believed |= rank;
                    next
                }
                None if believed => break,
                None => match front(rest, &mut peel.wrap) {
                    Some(next) => next,
                    None => return false,
                },
            };
            rest = next;
            if let Some(header) = read(rest) {
                self.found(piece, rest, header, peel);
                return true;
            }
        }
        if believed {
            self.emit(piece.raw, peel.wrap, None, rest, (peel.torn_start, peel.torn_end));
        }
        believed
    }

    /// `\n` that somebody escaped, in front of a header: a Python repr, JSON that was cut.
    fn split_literal(&mut self, text: &'a [u8], peel: Peel<'a>) -> bool {
        const MARK: &[u8] = b"\\n";
        if memchr::memchr(b'\\', text).is_none() {
            return false;
        }
        let Some(first) = memmem::find(text, MARK) else { return false };
        if !MARKS.iter().any(|mark| mark.find(&text[first..]).is_some()) || !memmem::find_iter(&text[first..], MARK).any(|p| read(unquote_start(&text[first + p + 2..])).is_some())
        {
            return false;
        }
        let mut start = 0;
        while start <= text.len() {
            let end = memmem::find(&text[start..], MARK).map_or(text.len(), |p| start + p);
            let part = &text[start..end];
            let body = unquote(part.strip_suffix(b"\\").unwrap_or(part));
            if !body.is_empty() {
                self.peeled(Piece { raw: part, body, depth: MAX_DEPTH, cleaned: true }, body, peel);
            }
            start = end + 2;
        }
        true
    }

    /// Headers in the middle of a text: behind an unknown wrapper, or behind a torn or unfinished record.
    fn glued(&mut self, piece: Piece<'a>, text: &'a [u8], peel: Peel<'a>) -> bool {
        let Some(start) = next_start(text, 0) else { return false };
        let (front, rest) = text.split_at(start);
        let Some(header) = read(rest) else { return false };
        let mut behind = peel;
        if is_wrapper(front) {
            self.found(piece, rest, header, behind);
            return true;
        }
        let torn = !is_clean(front);
        self.emit(front, peel.wrap, None, front, (peel.torn_start, torn));
        behind.torn_start = torn;
        self.found(Piece { raw: rest, body: rest, ..piece }, rest, header, behind);
        true
    }

    /// A header was read at the start of `text`; further ones may be glued behind it.
    fn found(&mut self, piece: Piece<'a>, text: &'a [u8], header: Read<'a>, mut peel: Peel<'a>) {
        if self.split_literal(text, peel) {
            return;
        }
        let (mut piece, mut text, mut header) = (piece, text, header);
        loop {
            let at = text.len() - header.msg.len();
            let next = next_start(text, at).and_then(|start| read(&text[start..]).map(|h| (start, h)));
            let Some((start, following)) = next else { break };
            let torn = !is_clean(&text[..start]);
            // What is quoted ends where the next record begins, if the piece still is as it stood.
            let front = piece.raw.len().checked_sub(text.len()).filter(|n| piece.raw[*n..] == *text);
            let quoted = front.map_or(&text[..start], |n| &piece.raw[..n + start]);
            self.has_header = true;
            self.emit(quoted, peel.wrap, Some(header.header), &text[at..start], (peel.torn_start || header.torn, torn));
            text = &text[start..];
            piece = Piece { raw: text, body: text, ..piece };
            header = following;
            peel.torn_start = torn;
        }
        let cut = is_cut(text.len(), &header.header);
        self.has_header = true;
        self.emit(piece.raw, peel.wrap, Some(header.header), header.msg, (peel.torn_start || header.torn, peel.torn_end || cut));
    }
}

/// Start of the next whole header in `text` that begins behind `from`.
fn next_start(text: &[u8], from: usize) -> Option<usize> {
    MARKS.iter().filter_map(|mark| mark.find_iter(&text[from..]).find_map(|p| start_of(text, from, from + p))).min()
}

/// The text before a glued header ends in a character that no host holds and that ends a record: nothing is torn.
fn is_clean(front: &[u8]) -> bool {
    matches!(front.last(), Some(b'>' | b')' | b']' | b'}' | b'"' | b'\'' | b'|' | b'!' | b'.')) || front.ends_with(b".so")
}

/// The text before a header looks like what loggers and launchers print: it ends in a mark and a blank.
fn is_wrapper(front: &[u8]) -> bool {
    front.len() <= 200 && matches!(front, [.., b':' | b']' | b')' | b'|' | b'-' | b'>' | b'}' | b'%' | b'$', b' ' | b'\t'])
}

/// NCCL up to 2.29 and RCCL print into 1,024 bytes; the line end in front of a WARN takes one of them.
fn is_cut(len: usize, header: &Header<'_>) -> bool {
    matches!(len, 1022 | 1023) || (len == 1021 && header.level == Level::Warn)
}

/// A line of RCCL's error trace without its build path: `/…/hipify/src/init.cc:473 -> 3`.
fn short_trace(msg: &[u8], rccl: bool) -> (&[u8], bool) {
    let word = msg.split(|b| *b == b' ').next().unwrap_or_default();
    let source = memmem::rfind(word, b"/src/").filter(|_| memmem::find(msg, b" -> ").is_some());
    source.map_or((msg, rccl), |p| (&msg[p + 5..], rccl || is_rccl(word)))
}
