//! Digests in files: a line with the format's version, then zstd over lines of JSON: the head, a line a stream, a line
//! a process. JSON so that a field can be added without a new version; one line at a time so that neither a damaged
//! nor a hostile file takes more memory than it says.

mod check;
mod wire;

use super::{Digest, HostFacts, Mark, Process, Sample, StreamInfo};
use ahash::RandomState;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{WireProcess, freeze, thaw};

/// First bytes of every digest, of any version.
pub const MAGIC: &[u8] = crate::input::WHOLE;

/// Version of the format. A new field does not change it.
pub const VERSION: u32 = 1;

/// The first line.
pub const SCHEMA: &str = "ncclog.digest/1";

/// Most bytes that one digest decodes to: twenty thousand ranks at the bound of a rank.
const MAX_BYTES: u64 = 2 << 30;

/// Times that a digest may be larger than its file: real ones are twenty to fifty times.
const MAX_RATIO: u64 = 256;

/// What any digest may decode to, however small its file is.
const FREE_BYTES: u64 = 16 << 20;

/// Longest line, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Most streams and most processes of one digest.
const MAX_COUNT: usize = 1 << 20;

/// What the kinds of the user's patterns begin with.
const USER_KIND: &str = "user.";

/// Lines that are parsed at once.
const BATCH: usize = 256;

/// Logarithm of the largest window that is decoded: 8 MB.
const WINDOW: u32 = 23;

/// Why a digest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It begins otherwise.
    #[error("is no digest; make one with `ncclog digest`")]
    NoDigest,
    /// A later format.
    #[error("was written by a newer ncclog (digest format {0}, this one reads {VERSION}); use that ncclog here, or give the logs themselves")]
    Newer(u64),
    /// Its bytes are not what was written.
    #[error("is a damaged digest ({0}); copy it again, or make it again with `ncclog digest`")]
    Damaged(String),
    /// More than is sound.
    #[error("decodes to more than a digest may; it was not read")]
    TooLarge,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

fn damaged(what: impl Into<String>) -> Unreadable {
    Unreadable::Damaged(what.into())
}

/// The line behind the version.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Head {
    /// Who wrote it.
    tool: String,
    streams: usize,
    /// Hosts that streams tell facts of.
    hosts: usize,
    processes: usize,
    /// The user's patterns that were looked for.
    patterns: Vec<(String, String)>,
}

/// A stream's line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WireStream {
    path: String,
    from: String,
    bytes: u64,
    lines: u64,
    nccl_lines: u64,
    events: u64,
    problem: Option<String>,
    last_time: Option<crate::line::Time>,
    /// Line, offset, time and text of the last line.
    last: Option<(u64, u64, Option<crate::line::Time>, String)>,
}

/// Writes a digest.
pub fn write(digest: &Digest, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{SCHEMA}")?;
    let mut out = zstd::stream::write::Encoder::new(out, 6)?;
    out.include_checksum(true)?;
    out.window_log(WINDOW)?;
    let hosts = hosts(digest)?;
    let head = Head {
        tool: concat!("ncclog ", env!("CARGO_PKG_VERSION")).to_owned(),
        streams: digest.streams.len(),
        hosts: hosts.len(),
        processes: digest.processes.len(),
        patterns: digest.patterns.clone(),
    };
    line(&mut out, &head)?;
    for info in &digest.streams {
        line(&mut out, &freeze_stream(info))?;
    }
    for host in hosts {
        out.write_all(&host)?;
    }
    for process in &digest.processes {
        line(&mut out, &freeze(process, process.stream))?;
    }
    out.finish()?.flush()
}

/// The facts of hosts, a line each: the stream, what it tells.
fn hosts(digest: &Digest) -> io::Result<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    for (stream, facts) in digest.streams.iter().enumerate().flat_map(|(i, s)| s.facts.iter().map(move |f| (i as u32, f))) {
        let mut text = Vec::new();
        line(&mut text, &(stream, facts))?;
        // Facts are bounded; only escapes could make them longer than a reader takes.
        if text.len() as u64 <= MAX_LINE {
            lines.push(text);
        }
    }
    Ok(lines)
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Bytes that a process takes in a digest before it is compressed.
pub(super) fn size(process: &Process) -> usize {
    let mut counter = Counter(0);
    // Nothing that is counted can fail.
    let _ = serde_json::to_writer(&mut counter, &freeze(process, 0));
    counter.0
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn freeze_stream(info: &StreamInfo) -> WireStream {
    let StreamInfo { path, from, bytes, lines, nccl_lines, events, problem, last_time, last, facts: _ } = info;
    WireStream {
        path: path.clone(),
        from: from.clone(),
        bytes: *bytes,
        lines: *lines,
        nccl_lines: *nccl_lines,
        events: *events,
        problem: problem.clone(),
        last_time: *last_time,
        last: last.as_ref().map(|s| (s.at.line, s.at.offset, s.at.time, s.text.clone())),
    }
}

fn thaw_stream(wire: WireStream, stream: u32, name: &str) -> StreamInfo {
    let sample = |(line, offset, time, text)| Sample { at: Mark { stream, line, offset, time }, text, fields: Vec::new(), tid: 0, level: None, file: String::new(), repeated: 0 };
    StreamInfo {
        path: wire.path,
        from: if wire.from.is_empty() { name.to_owned() } else { wire.from },
        bytes: wire.bytes,
        lines: wire.lines,
        nccl_lines: wire.nccl_lines,
        events: wire.events,
        problem: wire.problem,
        last_time: wire.last_time,
        last: wire.last.map(|s| sample(s).into()),
        facts: Vec::new(),
    }
}

/// A digest that was read, its processes still as the file holds them: which numbers their streams get is known only
/// when all digests are there.
#[derive(Debug, Default)]
pub struct Packed {
    /// The streams.
    pub streams: Vec<StreamInfo>,
    /// The user's patterns that were looked for.
    pub patterns: Vec<(String, String)>,
    processes: Vec<WireProcess>,
}

impl Packed {
    /// Its processes with the numbers that `streams` gives to its streams; `None` leaves a stream out.
    pub fn unpack(self, streams: &[Option<u32>]) -> Vec<Process> {
        let number = |p: &WireProcess| streams.get(p.stream as usize).copied().flatten();
        self.processes.into_par_iter().filter_map(|p| number(&p).map(|n| thaw(p, n))).collect()
    }

    /// The digest by itself.
    pub fn into_digest(mut self) -> Digest {
        let numbers: Vec<Option<u32>> = (0..self.streams.len() as u32).map(Some).collect();
        let (streams, patterns) = (std::mem::take(&mut self.streams), std::mem::take(&mut self.patterns));
        Digest { streams, processes: self.unpack(&numbers), patterns }
    }

    /// Takes the user's patterns that are not among `wanted` out, with what they matched; tells how many facts that
    /// were.
    pub fn keep_patterns(&mut self, wanted: &[(String, String)]) -> usize {
        self.patterns.retain(|p| wanted.contains(p));
        let known: BTreeSet<&str> = self.patterns.iter().map(|(kind, _)| kind.as_str()).collect();
        let mut dropped = 0;
        for process in &mut self.processes {
            let before = process.ledger.len();
            process.ledger.retain(|e| !e.0.starts_with(USER_KIND) || known.contains(e.0.as_str()));
            dropped += before - process.ledger.len();
        }
        dropped
    }

    /// What each stream holds, as a number: it tells streams of one name apart, whatever digest they came by.
    pub(super) fn marks(&self) -> Vec<u64> {
        let mut marks = vec![0; self.streams.len()];
        for process in &self.processes {
            if let Some(known) = marks.get_mut(process.stream as usize) {
                *known = wire_mark(*known, process);
            }
        }
        marks
    }
}

/// The mark of a stream with one more process; see [`Packed::marks`].
pub(super) fn mark(before: u64, process: &Process) -> u64 {
    wire_mark(before, &freeze(process, 0))
}

fn wire_mark(before: u64, p: &WireProcess) -> u64 {
    RandomState::with_seeds(11, 12, 13, 14).hash_one((before, &p.host, &p.label, p.pid, p.records, &p.samples))
}

/// Whether the bytes begin like a digest.
pub fn is_digest(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Reads the digest called `name`. It is read whole or not at all.
pub fn read(raw: &mut dyn Read, name: &str) -> Result<Packed, Unreadable> {
    let mut raw = BufReader::with_capacity(1 << 16, raw);
    version(&mut raw)?;
    let taken = AtomicU64::new(0);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(1 << 16, Taken { inner: raw, count: &taken }))?;
    decoder.window_log_max(WINDOW)?;
    let mut lines = Lines { inner: BufReader::with_capacity(1 << 17, decoder), taken: &taken, given: 0 };
    let head: Head = lines.parse()?;
    if head.streams > MAX_COUNT || head.hosts > MAX_COUNT || head.processes > MAX_COUNT || head.patterns.len() > crate::event::MAX_PATTERNS {
        return Err(Unreadable::TooLarge);
    }
    let mut packed = Packed { patterns: head.patterns, ..Packed::default() };
    for stream in 0..head.streams {
        let info = thaw_stream(lines.parse()?, stream as u32, name);
        check::stream(&info).map_err(damaged)?;
        packed.streams.push(info);
    }
    for _ in 0..head.hosts {
        let (stream, mut facts): (u32, HostFacts) = lines.parse()?;
        check::host(&mut facts).map_err(damaged)?;
        let info = packed.streams.get_mut(stream as usize).ok_or_else(|| damaged("a host belongs to no stream"))?;
        info.facts.push(facts);
    }
    let mut left = head.processes;
    while left > 0 {
        let batch: Vec<Vec<u8>> = (0..left.min(BATCH)).map(|_| lines.next()).collect::<Result<_, _>>()?;
        left -= batch.len();
        let parsed: Vec<Result<WireProcess, Unreadable>> = batch.par_iter().map(|text| process(text, head.streams)).collect();
        for process in parsed {
            packed.processes.push(process?);
        }
    }
    lines.end()?;
    Ok(packed)
}

fn process(text: &[u8], streams: usize) -> Result<WireProcess, Unreadable> {
    let process: WireProcess = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
    check::process(&process, streams).map_err(damaged)?;
    Ok(process)
}

/// Reads the first line.
fn version(raw: &mut impl BufRead) -> Result<(), Unreadable> {
    let mut first = Vec::new();
    raw.take(64).read_until(b'\n', &mut first)?;
    let text = first.strip_prefix(MAGIC).ok_or(Unreadable::NoDigest)?;
    let number = text.strip_suffix(b"\n").and_then(|t| std::str::from_utf8(t).ok()).and_then(|t| t.trim_end().parse::<u64>().ok());
    match number {
        Some(n) if n == u64::from(VERSION) => Ok(()),
        Some(n) if n > u64::from(VERSION) => Err(Unreadable::Newer(n)),
        _ => Err(damaged("its first line names no known format")),
    }
}

/// Counts what is read.
struct Taken<'a, R> {
    inner: R,
    count: &'a AtomicU64,
}

impl<R: Read> Read for Taken<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Gives out lines within the bounds.
struct Lines<'a, R> {
    inner: R,
    taken: &'a AtomicU64,
    given: u64,
}

impl<R: BufRead> Lines<'_, R> {
    fn next(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut text = Vec::new();
        self.inner.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut text)?;
        if text.pop() != Some(b'\n') {
            return Err(if text.len() as u64 >= MAX_LINE { Unreadable::TooLarge } else { damaged("it ends too early") });
        }
        self.given += text.len() as u64;
        let most = MAX_BYTES.min(FREE_BYTES.saturating_add(self.taken.load(Ordering::Relaxed).saturating_mul(MAX_RATIO)));
        if self.given > most { Err(Unreadable::TooLarge) } else { Ok(text) }
    }

    fn parse<T: for<'d> Deserialize<'d>>(&mut self) -> Result<T, Unreadable> {
        serde_json::from_slice(&self.next()?).map_err(|e| damaged(e.to_string()))
    }

    /// Nothing may follow; the checksum is read with the end.
    fn end(&mut self) -> Result<(), Unreadable> {
        let mut rest = [0];
        match self.inner.read(&mut rest)? {
            0 => Ok(()),
            _ => Err(damaged("something follows its end")),
        }
    }
}
