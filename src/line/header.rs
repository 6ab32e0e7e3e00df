//! The NCCL line header, nom grammar. Source: `src/debug.cc` of NCCL 2.2 … 2.32 and of RCCL.

use super::Time;
use super::scan::{Scan, decimal, no, number, word};
use super::time::bracketed;
use memchr::memmem::{self, Finder};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n};
use nom::combinator::opt;
use nom::sequence::{delimited, preceded, terminated};
use std::sync::LazyLock;

/// Level token of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `NCCL INFO`
    Info,
    /// `NCCL WARN`
    Warn,
    /// RCCL's `[FATAL ERROR]:`
    Error,
    /// `NCCL TRACE`
    Trace,
    /// `NCCL CALL`
    Call,
    /// A bare or logged version line.
    Version,
    /// Any other level name (`NOTICE`, `DIAG`).
    Other,
}

/// A parsed header. Empty or zero fields were not printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// Host name up to its first dot (an IPv4 address is kept whole); empty if the header had none or a mask.
    pub host: &'a [u8],
    /// Process id; 0 if the header had none.
    pub pid: u32,
    /// Kernel thread id; 0 if the header had none.
    pub tid: u32,
    /// CUDA device of the thread (no rank); `None` if absent or garbage (not in 0..1024).
    pub dev: Option<u16>,
    /// Level.
    pub level: Level,
    /// Source file of a WARN, build path removed (some plugins print a function's signature); empty otherwise.
    pub file: &'a [u8],
    /// Source line of a WARN or TRACE.
    pub file_line: u32,
    /// Function (WARN of 2.30.7+, TRACE); empty otherwise.
    pub func: &'a [u8],
    /// NCCL's own time stamp.
    pub time: Option<Time>,
    /// The header shows RCCL (`hipify/` path, `[FATAL ERROR]`).
    pub rccl: bool,
}

/// A header as read: with the message and whether its first token is torn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    /// The header.
    pub header: Header<'a>,
    /// What follows it.
    pub msg: &'a [u8],
    /// Process or host is the rest of something cut.
    pub torn: bool,
}

/// Longest file, line and function in front of the level; RCCL's build paths reach 200 bytes.
const PLACE: usize = 512;

/// Who printed: host, pid, tid, and whether a part of it is missing at the left.
#[derive(Clone, Copy, Default)]
struct Owner<'a> {
    host: &'a [u8],
    pid: u32,
    tid: u32,
    torn: bool,
}

fn is_host(b: u8) -> bool {
    !matches!(b, 0..=b' ' | 0x7f.. | b':' | b'[' | b']' | b'(' | b')' | b'{' | b'}' | b'<' | b'>' | b'"' | b'\'' | b',' | b'=' | b';' | b'|' | b'\\' | b'/' | b'`')
}

/// A name, or a mask such as `<host>` that people put in its place.
fn host(text: &[u8]) -> Scan<'_, &[u8]> {
    let mask = delimited(tag(&b"<"[..]), take_while_m_n(1, 24, |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), tag(&b">"[..])).map(|_| &b""[..]);
    alt((mask, take_while_m_n(1, 255, is_host))).parse(text)
}

/// A number, or a mask: `<pid>`, `XXXXXX`, `****`.
fn id(text: &[u8]) -> Scan<'_, u32> {
    let angle = delimited(tag(&b"<"[..]), take_while_m_n(1, 24, |b: u8| b.is_ascii_alphanumeric() || b == b'_'), tag(&b">"[..])).map(|_| 0);
    let cross = take_while_m_n(2, 16, |b| matches!(b, b'X' | b'x' | b'*' | b'#')).map(|_| 0);
    let (rest, n) = alt((number, angle, cross)).parse(text)?;
    if matches!(rest.first(), Some(b' ' | b':')) { Ok((rest, n)) } else { no(text) }
}

/// `host:pid:tid `, `host:pid `, and the torn `:pid:tid `, `pid:tid `.
fn process(text: &[u8]) -> Scan<'_, Owner<'_>> {
    let colon = || tag(&b":"[..]);
    let (rest, host) = opt(host).parse(text)?;
    let (rest, pid) = preceded(colon(), id).parse(rest)?;
    let (rest, tid) = terminated(opt(preceded(colon(), id)), tag(&b" "[..])).parse(rest)?;
    if tid.is_none() && host.is_some_and(is_source) {
        return no(text);
    }
    let numeric = host.is_some_and(|h| !h.is_empty() && h.iter().all(u8::is_ascii_digit));
    if host.is_none() || (numeric && tid.is_none()) {
        return Ok((rest, Owner { torn: true, ..Owner::default() }));
    }
    let (host, torn) = short_host(host.unwrap_or_default());
    Ok((rest, Owner { host, pid, tid: tid.unwrap_or(0), torn }))
}

/// `host ` in front of `[dev] `: process and thread were cut out.
fn host_only(text: &[u8]) -> Scan<'_, Owner<'_>> {
    let (rest, host) = terminated(host, tag(&b" "[..])).parse(text)?;
    if device(rest).is_err() {
        return no(text);
    }
    let torn = host.iter().all(u8::is_ascii_digit);
    let (host, cut) = short_host(if torn { b"" } else { host });
    Ok((rest, Owner { host, torn: torn || cut, ..Owner::default() }))
}

/// NCCL prints no dots in a host. A name with dots is a full name or an address that somebody put there, or a
/// library's file name that ran into the host (`libnccl-net.sonode1`).
fn short_host(host: &[u8]) -> (&[u8], bool) {
    let torn = memmem::find(host, b".so").is_some_and(|p| host.len() > p + 3);
    let Some(dot) = memchr::memchr(b'.', host).filter(|p| *p > 0) else { return (host, torn) };
    let address = host.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    (if torn || address { host } else { &host[..dot] }, torn)
}

/// `[dev] `; any signed number, since old versions print an uninitialised one.
fn device(text: &[u8]) -> Scan<'_, Option<u16>> {
    let digits = take_while_m_n(1, 20, |b: u8| b.is_ascii_digit());
    let (rest, (minus, digits)) = delimited(tag(&b"["[..]), (opt(tag(&b"-"[..])), digits), tag(&b"] "[..])).parse(text)?;
    let dev = decimal(digits).and_then(|n| u16::try_from(n).ok()).filter(|n| minus.is_none() && *n < 1024);
    Ok((rest, dev))
}

fn level_name(name: &[u8]) -> Level {
    match name {
        b"INFO" => Level::Info,
        b"WARN" => Level::Warn,
        b"TRACE" => Level::Trace,
        b"CALL" => Level::Call,
        b"VERSION" => Level::Version,
        _ => Level::Other,
    }
}

/// `NCCL LEVEL ` or RCCL's `[FATAL ERROR]: `.
fn level(text: &[u8]) -> Scan<'_, Level> {
    let fatal = tag(&b"[FATAL ERROR]:"[..]).map(|_| Level::Error);
    let name = take_while_m_n(4, 8, |b: u8| b.is_ascii_uppercase());
    let (rest, level) = alt((preceded(tag(&b"NCCL "[..]), name).map(level_name), fatal)).parse(text)?;
    blank_or_end(rest, level)
}

/// The level of versions before 2.4, which did not name the library.
fn old_level(text: &[u8]) -> Scan<'_, Level> {
    let (rest, name) = alt((tag(&b"INFO"[..]), tag(&b"WARN"[..]))).parse(text)?;
    blank_or_end(rest, level_name(name))
}

fn blank_or_end(rest: &[u8], level: Level) -> Scan<'_, Level> {
    match rest {
        [] => Ok((rest, level)),
        [b' ' | b'\t', msg @ ..] => Ok((msg, level)),
        // Bytes of a broken file.
        [first, ..] if *first >= 0x80 => Ok((rest, level)),
        _ => no(rest),
    }
}

/// Where in the source: file or function, line, function, milliseconds.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    file: &'a [u8],
    line: u32,
    func: &'a [u8],
    rccl: bool,
}

/// A build path that only RCCL has.
pub(super) fn is_rccl(path: &[u8]) -> bool {
    memmem::find(path, b"hipify/").is_some() || memmem::find(path, b"rccl/").is_some()
}

/// What stands between device and level: `FILE:LINE`, `FILE:LINE (FUNC)`, `MS FUNC:LINE`.
fn place(text: &[u8]) -> Option<Place<'_>> {
    let (text, func) = match text.strip_suffix(b")").and_then(|t| memmem::rfind(t, b" (").map(|p| (&t[..p], &t[p + 2..]))) {
        Some((front, func)) if !func.is_empty() => (front, func),
        _ => (text, &b""[..]),
    };
    let colon = memchr::memrchr(b':', text)?;
    let line = u32::try_from(decimal(&text[colon + 1..])?).ok()?;
    let mut file = &text[..colon];
    let mut func = func;
    if let Some(blank) = memchr::memchr(b' ', file)
        && file[..blank].contains(&b'.')
        && file[..blank].iter().all(|b| b.is_ascii_digit() || *b == b'.')
    {
        (file, func) = (&b""[..], &file[blank + 1..]);
    }
    let rccl = is_rccl(file);
    let file = memmem::rfind(file, b"/src/").map_or(file, |p| &file[p + 5..]);
    (!file.is_empty() || !func.is_empty()).then_some(Place { file, line, func, rccl })
}

static NCCL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" NCCL "));
static OLD_WARN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" WARN "));

/// A place and the level behind it.
fn placed(text: &[u8], old: bool) -> Option<(&[u8], Place<'_>, Level)> {
    let window = text.get(..PLACE).unwrap_or(text);
    let at = if old { OLD_WARN.find(window) } else { NCCL.find(window) }?;
    let (rest, level) = if old { old_level(&text[at + 1..]) } else { level(&text[at + 1..]) }.ok()?;
    Some((rest, place(&text[..at])?, level))
}

/// A source file, so strict that no prose is taken for it.
fn is_source(file: &[u8]) -> bool {
    let name = memchr::memrchr(b'.', file).map(|p| (&file[..p], &file[p + 1..]));
    name.is_some_and(|(stem, ext)| {
        matches!(ext, b"c" | b"cc" | b"cpp" | b"cu" | b"h" | b"hpp") && stem.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/' | b'-' | b'.'))
    })
}

/// The first word is `FILE:LINE`.
fn starts_with_source(text: &[u8]) -> bool {
    let word = text.get(..PLACE).unwrap_or(text).split(|b| *b == b' ').next().unwrap_or_default();
    memchr::memrchr(b':', word).is_some_and(|p| is_source(&word[..p]))
}

/// First words of messages of NCCL 2.0 … 2.3, for headers that are nothing but `[0] INFO`.
const OLD_WORDS: [&[u8]; 18] = [
    b"NET",
    b"Ring ",
    b"Using ",
    b"comm ",
    b"Launch mode ",
    b"Trees ",
    b"Tree ",
    b"Channel ",
    b"Min Comp Cap",
    b"NCCL_",
    b"Failed to open lib",
    b"CUDA ",
    b"Cuda failure",
    b"Call to ",
    b"Mem ",
    b"bootstrap",
    b"No module",
    b"Could not",
];

/// Reads a header at the start of `text`.
pub(super) fn read(text: &[u8]) -> Option<Read<'_>> {
    let stamp = terminated(bracketed, tag(&b" "[..])).parse(text).ok();
    let (text, time) = stamp.map_or((text, None), |(rest, t)| (rest, Some(t)));
    if time.is_none()
        && let Some(version) = version(text)
    {
        return Some(version);
    }
    let (rest, owner) = alt((process, host_only)).parse(text).map_or((text, None), |(rest, o)| (rest, Some(o)));
    let (rest, dev) = device(rest).map_or((rest, None), |(rest, d)| (rest, Some(d)));
    let (msg, place, level, old) = if let Ok((msg, level)) = level(rest) {
        (msg, Place::default(), level, false)
    } else if owner.is_none() && dev.is_none() && !starts_with_source(rest) {
        return None;
    } else if let Some((msg, place, level)) = placed(rest, false) {
        (msg, place, level, false)
    } else if let Some((msg, level)) = old_level(rest).ok().filter(|_| dev.is_some()) {
        (msg, Place::default(), level, true)
    } else {
        let (msg, place, level) = placed(rest, true).filter(|(_, p, _)| dev.is_some() && is_source(p.file))?;
        (msg, place, level, true)
    };
    if owner.is_none() && !bare(level, &place, msg, old, dev.is_some()) {
        return None;
    }
    let owner = owner.unwrap_or_default();
    // Without thread and device it is an address or a file's line, unless the record is of the kind that prints none.
    if dev.is_none() && owner.tid == 0 && !owner.host.is_empty() && level != Level::Other {
        return None;
    }
    let rccl = place.rccl || level == Level::Error;
    let header = Header { host: owner.host, pid: owner.pid, tid: owner.tid, dev: dev.flatten(), level, file: place.file, file_line: place.line, func: place.func, time, rccl };
    Some(Read { header, msg, torn: owner.torn })
}

/// Whether a header that names no host and no process is believed.
fn bare(level: Level, place: &Place<'_>, msg: &[u8], old: bool, dev: bool) -> bool {
    if old {
        return is_source(place.file) || OLD_WORDS.iter().any(|w| msg.starts_with(w));
    }
    let known = matches!(level, Level::Info | Level::Warn | Level::Trace);
    known && (dev || place.file.is_empty() || is_source(place.file))
}

/// A version line without any header. It is the library's own, so it counts as a record of it.
fn version(text: &[u8]) -> Option<Read<'_>> {
    let (rest, name) = alt((tag::<_, _, nom::error::Error<&[u8]>>(&b"NCCL version "[..]), tag(&b"RCCL version "[..]))).parse(text).ok()?;
    let number = rest.strip_prefix(b": ").unwrap_or(rest);
    let (_, number) = word(b",")(number).ok()?;
    let rccl = name.starts_with(b"R");
    let numeric = number.first()?.is_ascii_digit() && number.contains(&b'.') && (rccl || number.contains(&b'+'));
    let header = Header { host: b"", pid: 0, tid: 0, dev: None, level: Level::Version, file: b"", file_line: 0, func: b"", time: None, rccl };
    numeric.then_some(Read { header, msg: text, torn: false })
}

/// Reads a header at the start of `text`; returns it and the message behind it.
pub fn parse_header(text: &[u8]) -> Option<(Header<'_>, &[u8])> {
    read(text).map(|r| (r.header, r.msg))
}

/// Marks that every header but the oldest ends with.
pub(super) static MARKS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("NCCL "), Finder::new("[FATAL ERROR]:")]);

/// How far back from its mark the start of a header is looked for.
const REACH: usize = PLACE + 320;

/// The start of a whole header (host, process) whose mark stands at `mark`, not before `from`. What is in front of
/// the host's first byte may belong to another record: two writers on one pipe, or a lost line end.
pub(super) fn start_of(text: &[u8], from: usize, mark: usize) -> Option<usize> {
    let floor = from.max(mark.saturating_sub(REACH));
    let mut end = mark;
    // The device in brackets is the last one before the mark, unless the place itself holds brackets.
    for _ in 0..3 {
        let bracket = memchr::memrchr(b']', &text[floor..end]).map(|p| floor + p);
        let candidate = match bracket {
            Some(close) => {
                end = close;
                let Some(open) = memchr::memrchr(b'[', &text[floor..close]).map(|p| floor + p) else { continue };
                let digits = text[open + 1..close].strip_prefix(b"-").unwrap_or(&text[open + 1..close]);
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    continue;
                }
                open
            }
            None => break,
        };
        if let Some(start) = owner_before(text, floor, candidate) {
            return Some(start);
        }
    }
    owner_before(text, floor, mark)
}

/// How much of the word before a process is the end of the record before: no host holds dots, but sentences end in
/// one and libraries in `.so`.
fn glued_part(host: &[u8]) -> usize {
    let Some(dot) = memchr::memrchr(b'.', host).filter(|_| !host.iter().all(|b| b.is_ascii_digit() || *b == b'.')) else { return 0 };
    let library = host[dot..].starts_with(b".so") && host.len() > dot + 3;
    if dot + 1 == host.len() { 0 } else { dot + 1 + if library { 2 } else { 0 } }
}

/// Start of `host:pid:tid ` (with its stamp) that ends right before `end`, if what starts there reads as a header.
fn owner_before(text: &[u8], floor: usize, end: usize) -> Option<usize> {
    let head = text[..end].strip_suffix(b" ").filter(|h| h.len() > floor)?;
    let word = head.len() - head[floor..].iter().rev().take_while(|b| is_host(**b) || **b == b':').count();
    // Numbers from the right, then the host: `file.log:12:node1:77:77` names node1.
    let numeric = |range: &[u8]| !range.is_empty() && range.iter().all(u8::is_ascii_digit);
    let before = |end: usize| memchr::memrchr(b':', &head[word..end]).map(|p| word + p);
    let last = before(head.len()).filter(|p| numeric(&head[p + 1..]))?;
    let second = before(last).filter(|p| numeric(&head[p + 1..last]));
    let host_end = second.unwrap_or(last);
    let mut start = before(host_end).map_or(word, |p| p + 1);
    start += glued_part(&head[start..host_end]);
    read(&text[start..]).filter(|r| r.header.pid != 0)?;
    // The stamp in front belongs to the header.
    if let Some(open) = text[floor..start].strip_suffix(b"] ").and_then(|t| memchr::memrchr(b'[', t)).map(|p| floor + p)
        && read(&text[open..]).is_some_and(|r| r.header.time.is_some())
    {
        start = open;
    }
    Some(start)
}
