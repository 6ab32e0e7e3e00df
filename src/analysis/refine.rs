//! Reads the stretch of the inputs again in which ranks issued different collectives, and names the first one.
//!
//! The sides are read in step, a block at a time, so that memory does not grow with the stretch. Ranks with the same
//! hash issued the same calls: one of each side is enough, however many ranks there are.

use crate::digest::{CommLog, KeptCall, MAX_TEXT, map, roll};
use crate::event::Function;
use crate::input::StreamBlocks;
use crate::job::divergence::LOOK_AHEAD;
use crate::job::{Divergence, Job, Member};
use bumpalo::Bump;
use std::collections::VecDeque;
use std::io::Read;

/// A reader of decoded bytes.
pub type Bytes = Box<dyn Read>;

/// Opens a stream again at a byte offset of its decoded bytes; `None` where that is not possible.
pub type Reopen<'a> = dyn Fn(&Job, u32, u64) -> Option<Bytes> + 'a;

/// Settles the job's divergences as far as the inputs can be read again.
pub fn refine(job: &mut Job, reopen: &Reopen<'_>) {
    let mut list = std::mem::take(&mut job.divergences);
    for found in &mut list {
        if !found.is_exact()
            && let Some((agreed, calls)) = first_difference(job, found, reopen)
        {
            found.settle(agreed, &calls);
        }
        if found.is_exact() {
            let comm = &job.comms[found.comm];
            for side in &mut found.sides {
                let log = job.comm_log(&comm.members[side.members[0]]);
                side.text = side.call.and_then(|call| line(reopen(job, log.stream, call.offset)?));
            }
        }
    }
    job.divergences = list;
}

/// The line at the reader's start, cut like every sample.
fn line(reader: Bytes) -> Option<String> {
    let mut text = Vec::new();
    reader.take(MAX_TEXT as u64).read_to_end(&mut text).ok()?;
    text.truncate(memchr::memchr(b'\n', &text).unwrap_or(text.len()));
    let text = text.trim_ascii_end();
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// Number of the first call that is not the same on all sides, and each side's calls from there on.
fn first_difference(job: &Job, found: &Divergence, reopen: &Reopen<'_>) -> Option<(u64, Vec<Vec<KeptCall>>)> {
    let comm = &job.comms[found.comm];
    let mut sides: Vec<Calls<'_>> = found.sides.iter().map(|s| Calls::open(job, &comm.members[s.members[0]], found.agreed, reopen)).collect::<Option<_>>()?;
    let mut agreed = found.agreed;
    let mut row: Vec<KeptCall>;
    loop {
        if agreed >= found.until {
            // The hashes differ and the calls do not: the inputs are no longer what they were.
            return None;
        }
        row = sides.iter_mut().map(Calls::step).collect::<Option<_>>()?;
        if row.iter().any(|c| !c.same(&row[0])) {
            break;
        }
        agreed += 1;
    }
    let mut lists: Vec<Vec<KeptCall>> = row.into_iter().map(|c| vec![c]).collect();
    for (side, list) in sides.iter_mut().zip(&mut lists) {
        let want = LOOK_AHEAD * 2;
        list.extend(std::iter::from_fn(|| side.step()).take(want));
        while side.index < found.until && side.step().is_some() {}
        if !side.sound {
            return None;
        }
    }
    Some((agreed, lists))
}

/// The collectives of one process on one communicator, read again from a checkpoint on.
struct Calls<'a> {
    blocks: StreamBlocks<'static>,
    buffer: Vec<u8>,
    ready: VecDeque<KeptCall>,
    /// Offset at which the reader began, and line ends before the next block.
    base: u64,
    lines: u64,
    open_end: bool,
    host: &'a str,
    pid: u32,
    log: &'a CommLog,
    /// Calls given out, and the hash over all of them.
    index: u64,
    hash: u64,
    /// The hash agrees with the one of the first reading wherever that is known.
    sound: bool,
}

impl<'a> Calls<'a> {
    fn open(job: &'a Job, member: &Member, after: u64, reopen: &Reopen<'_>) -> Option<Self> {
        let proc = &job.procs[member.proc];
        let log = job.comm_log(member);
        // Between two checkpoints of this rank that the others do not have, its last one before is as good.
        let checkpoint = if after == 0 { None } else { Some(log.calls.checkpoint(after)?) };
        let base = checkpoint.map_or(0, |c| c.offset);
        let mut calls = Self {
            blocks: StreamBlocks::new(reopen(job, log.stream, base)?, crate::input::BLOCK_SIZE),
            buffer: Vec::new(),
            ready: VecDeque::new(),
            base,
            lines: checkpoint.map_or(0, |c| c.line.saturating_sub(1)),
            open_end: false,
            host: &proc.host,
            pid: proc.pid,
            log,
            index: after,
            hash: checkpoint.map_or(0, |c| c.hash),
            sound: true,
        };
        if let Some(checkpoint) = checkpoint {
            // The first line is the checkpoint's own.
            let own = calls.read()?;
            if own.offset != checkpoint.offset {
                return None;
            }
        }
        Some(calls)
    }

    fn step(&mut self) -> Option<KeptCall> {
        let call = self.read()?;
        self.index += 1;
        self.hash = roll(self.hash, &call);
        self.sound &= self.log.calls.hash_at(self.index).is_none_or(|h| h == self.hash);
        Some(call)
    }

    fn read(&mut self) -> Option<KeptCall> {
        while self.ready.is_empty() {
            let span = self.blocks.next(&mut self.buffer).ok()??;
            if self.open_end && span.closes_open_line {
                self.lines += 1;
            }
            self.open_end = span.open_end;
            let arena = Bump::new();
            let parsed = map(&self.buffer, &arena);
            for call in parsed.calls {
                let source = &parsed.sources[call.source as usize];
                let ours = call.call.comm == self.log.ptr && source.pid == self.pid && self.host.as_bytes().ends_with(source.host);
                if ours && !call.call.function.is_p2p() && call.call.function != Function::Other {
                    let line = self.lines + u64::from(call.line) + 1;
                    self.ready.push_back(KeptCall::new(&call.call, line, self.base + span.offset + u64::from(call.offset)));
                }
            }
            self.lines += parsed.newlines;
        }
        self.ready.pop_front()
    }
}
