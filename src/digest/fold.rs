//! The ordered half: folds a stream's blocks into its processes.

use super::comm::MAX_CHANNELS;
use super::facts::{RawLine, Reader};
use super::map::{Call, Item, Parsed, Place, Repeat, SeenSource};
use super::order::{Lately, Said, in_order, touch};
use super::ras::Report;
use super::{ChannelCount, CommLog, KeptCall, Ledger, MAX_TEXT, Mark, Process, Sample, SettingKey, StreamInfo};
use crate::event::{Channel, Direction, Event, Init, Note, Phase, Stage};
use crate::input::Span;
use crate::line::{RankHint, Wrap};
use ahash::AHashMap;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most processes of one stream that are told apart.
const MAX_PROCESSES: usize = 16_384;
/// Most processes with the same id that a torn host is compared with.
const MOST_ALIKE: usize = 64;
/// Most communicators of one process.
pub(super) const MAX_COMMS: usize = 128;
/// Most settings of one process.
pub(super) const MAX_SETTINGS: usize = 200;

/// Folds one stream. A clone can be finished to look at what was folded so far.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The stream's facts.
    pub info: StreamInfo,
    stream: u32,
    processes: Vec<Process>,
    index: AHashMap<(Vec<u8>, Vec<u8>, u32), usize>,
    /// Processes by their id, in order.
    by_pid: AHashMap<u32, Vec<usize>>,
    /// (process, thread) → the communicator that the thread works for.
    current: AHashMap<(usize, u32), usize>,
    report: Report,
    facts: Reader,
    lines: u64,
    /// The last line of the previous block has not ended yet.
    open: bool,
}

/// Makes the sample of a record.
type Make<'a> = &'a dyn Fn() -> Arc<Sample>;

/// Makes the sample of a record that stands elsewhere.
type MakeAt<'a> = &'a dyn Fn(&Place<'_>) -> Sample;

/// Where a block stands.
#[derive(Debug, Clone, Copy)]
struct Base {
    stream: u32,
    line: u64,
    offset: u64,
}

impl Base {
    fn mark(self, place: &Place<'_>) -> Mark {
        Mark { stream: self.stream, line: self.line + u64::from(place.line) + 1, offset: self.offset + u64::from(place.offset), time: place.time }
    }

    fn sample(self, place: &Place<'_>) -> Arc<Sample> {
        Arc::new(self.bare(place))
    }

    fn bare(self, place: &Place<'_>) -> Sample {
        Sample { at: self.mark(place), text: lossy(place.text, MAX_TEXT), fields: Vec::new(), tid: 0, level: None, file: String::new(), repeated: 0 }
    }
}

/// Text of at most `most` bytes, cut at a character.
fn lossy(text: &[u8], most: usize) -> String {
    let cut = &text[..text.len().min(most)];
    let mut out = std::str::from_utf8(cut).map_or_else(|_| String::from_utf8_lossy(cut).into_owned(), str::to_owned);
    if cut.len() < text.len() {
        // A character that the cut went through shows as one replacement; it was whole in the log.
        if out.ends_with('\u{fffd}') {
            out.pop();
        }
        out.push('…');
    }
    out
}

fn hint(wrap: &Wrap<'_>) -> Option<(bool, u32)> {
    wrap.rank.map(|r| match r {
        RankHint::Global(n) => (true, n),
        RankHint::Local(n) => (false, n),
    })
}

impl Folder {
    /// An empty fold of stream number `stream`.
    pub fn new(stream: u32, path: String) -> Self {
        Self {
            info: StreamInfo { path, ..StreamInfo::default() },
            stream,
            processes: Vec::new(),
            index: AHashMap::new(),
            by_pid: AHashMap::new(),
            current: AHashMap::new(),
            report: Report::default(),
            facts: Reader::default(),
            lines: 0,
            open: false,
        }
    }

    /// Folds the next block. `span` says where it stands.
    pub fn fold(&mut self, parsed: &Parsed<'_>, span: Span) {
        if self.open && span.closes_open_line {
            self.lines += 1;
            self.open = false;
        }
        let base = Base { stream: self.stream, line: self.lines, offset: span.offset };
        self.lines += parsed.newlines;
        if span.bytes > 0 {
            self.open = span.open_end;
        }
        self.info.nccl_lines += parsed.nccl_records;
        self.info.events += (parsed.items.len() + parsed.again.len() + parsed.calls.len()) as u64 + parsed.merged;
        self.info.last_time = self.info.last_time.max(parsed.last_time);
        if let Some(last) = &parsed.last {
            self.info.last = Some(base.sample(last));
        }
        for fact in &parsed.facts {
            let at = base.mark(&fact.place);
            self.facts.see(&RawLine { line: at.line, offset: at.offset, text: fact.place.text, msg: fact.msg, host: fact.wrap.host, label: fact.wrap.label });
        }
        let sources: Vec<Option<usize>> = parsed.sources.iter().map(|s| self.source(s, base)).collect();
        let mut calls = parsed.calls.iter().peekable();
        let mut lately = Lately::default();
        let mut late = Vec::new();
        for said in in_order(parsed) {
            while let Some(call) = calls.next_if(|c| (c.line, c.offset) < (said.place.line, said.place.offset)) {
                self.call(call, &mut lately, (&parsed.sources, &sources), base);
            }
            lately.forget();
            if let Some(touched) = self.item(&said, parsed, &sources, base) {
                touch(&mut late, touched, said);
            }
        }
        self.touch_late(&late, parsed, base);
        calls.for_each(|call| self.call(call, &mut lately, (&parsed.sources, &sources), base));
        for (source, process) in parsed.sources.iter().zip(&sources) {
            if let Some(p) = process {
                let process = &mut self.processes[*p];
                let at = base.mark(&source.last);
                if at > process.last.at {
                    process.last = base.sample(&source.last);
                }
            }
        }
    }

    /// Ends the stream, which had `bytes` decoded bytes.
    pub fn finish(mut self, bytes: u64) -> (StreamInfo, Vec<Process>) {
        self.info.bytes = bytes;
        self.info.facts = self.facts.finish();
        self.info.lines = self.lines + u64::from(self.open);
        // A block makes the processes of its headers first; their order must not depend on where it was cut.
        self.processes.sort_by_key(|p| p.first.at);
        self.processes.retain(|p| p.records > 0 || p.ledger.iter().next().is_some() || !p.settings.is_empty());
        self.processes.iter_mut().for_each(super::fit::fit);
        (self.info, self.processes)
    }

    fn source(&mut self, source: &SeenSource<'_>, base: Base) -> Option<usize> {
        let p = self.process(source.label, source.host, source.pid, &source.first, base)?;
        let process = &mut self.processes[p];
        process.records += source.records;
        process.rccl |= source.rccl;
        if let Some(dev) = source.dev {
            process.devices.insert(dev);
        }
        note_wrap(process, &source.wrap);
        Some(p)
    }

    /// The process of a header or of a wrapper. A host that is a piece or an extension of a known one with the same
    /// pid is a torn record of that process.
    fn process(&mut self, label: &[u8], host: &[u8], pid: u32, first: &Place<'_>, base: Base) -> Option<usize> {
        let key = (label.to_vec(), host.to_vec(), pid);
        if let Some(i) = self.index.get(&key) {
            return Some(*i);
        }
        if !host.is_empty() && pid != 0 {
            let same_pid = self.by_pid.get(&pid).map_or(&[][..], Vec::as_slice);
            let known = same_pid.iter().take(MOST_ALIKE).copied().find(|i| {
                let p = &self.processes[*i];
                let other = p.host.as_bytes();
                !other.is_empty() && p.label.as_bytes() == label && (other.ends_with(host) || host.ends_with(other) || other.starts_with(host))
            });
            if let Some(i) = known {
                self.index.insert(key, i);
                return Some(i);
            }
        }
        if self.processes.len() >= MAX_PROCESSES {
            return None;
        }
        let sample = base.sample(first);
        self.processes.push(Process {
            stream: self.stream,
            label: lossy(label, 120),
            host: lossy(host, 120),
            pid,
            rank_hint: None,
            wrap_hosts: BTreeSet::new(),
            wrap_ranks: BTreeSet::new(),
            rccl: false,
            versions: BTreeSet::new(),
            records: 0,
            first: Arc::clone(&sample),
            last: sample,
            devices: BTreeSet::new(),
            settings: BTreeMap::new(),
            ledger: Ledger::default(),
            comms: Vec::new(),
            dropped: 0,
        });
        let i = self.processes.len() - 1;
        self.by_pid.entry(pid).or_default().push(i);
        self.index.insert(key, i);
        Some(i)
    }

    /// The process of a record without a header: told apart by wrapper label, rank and pid.
    fn foreign(&mut self, item: &Item<'_>, base: Base) -> Option<usize> {
        let wrap = &item.wrap;
        let hint = hint(wrap);
        let mut label = wrap.label.to_vec();
        if let Some((global, rank)) = hint {
            label.extend_from_slice(format!(" rank {}{rank}", if global { "" } else { "local " }).as_bytes());
        }
        let p = self.process(&label, b"", wrap.pid.unwrap_or(0), &item.place, base)?;
        let process = &mut self.processes[p];
        process.rank_hint = hint;
        note_wrap(process, wrap);
        process.last = base.sample(&item.place);
        Some(p)
    }

    /// Takes an item in; the process and communicator that it belongs to, if it belongs to one.
    fn item(&mut self, said: &Said<'_, '_>, parsed: &Parsed<'_>, sources: &[Option<usize>], base: Base) -> Option<(usize, usize)> {
        let item = said.item;
        let source = item.source.map(|s| &parsed.sources[s as usize]);
        let p = match item.source {
            Some(s) => sources[s as usize],
            None => self.foreign(item, base),
        }?;
        let dev = source.and_then(|s| s.dev);
        let tid = thread(source);
        // One record, however many facts it stands for.
        let made = OnceCell::new();
        let sample = || Arc::clone(made.get_or_init(|| Arc::new(sample(item, said.place, tid, base))));
        match item.event {
            Event::Version(v) => {
                self.processes[p].versions.insert((v.library, lossy(v.text, 80)));
                self.add(p, "init.version", dev, String::new(), &sample);
            }
            Event::Setting(s) => {
                let process = &mut self.processes[p];
                if process.settings.len() < MAX_SETTINGS {
                    let key = SettingKey { name: lossy(s.name, 80), value: lossy(s.value, 200), in_force: s.in_force };
                    process.settings.entry(key).or_insert_with(sample);
                } else {
                    process.dropped += 1;
                }
            }
            Event::Init(init) => return Some((p, self.init(p, tid, dev, &init, &sample)?)),
            Event::Channel(channel) => return Some((p, self.channel(p, tid, dev, &channel, &sample)?)),
            Event::Note(note) => {
                if !said.again {
                    let repeat = item.again.and_then(|i| parsed.repeats.get(i as usize));
                    self.note(p, dev, &note, (&sample, &|place| self::sample(item, place, tid, base), base), (said.place, repeat));
                }
                return Some((p, self.stage(p, tid, dev, &note, &sample)?));
            }
            Event::UnknownWarn => {
                let template = template(item.msg);
                self.add(p, "warn.unknown", dev, template, &sample);
            }
            Event::Collective(_) => {}
        }
        None
    }

    fn add(&mut self, p: usize, kind: &str, dev: Option<u16>, key: String, sample: Make<'_>) {
        let process = &mut self.processes[p];
        if !process.ledger.add(kind, dev, key, sample) {
            process.dropped += 1;
        }
    }

    /// Counts a note, and the block's further records that say the same. `sample` makes its own record, `other` theirs.
    fn note(&mut self, p: usize, dev: Option<u16>, note: &Note<'_>, (sample, other, base): (Make<'_>, MakeAt<'_>, Base), (place, repeat): (&Place<'_>, Option<&Repeat<'_>>)) {
        let mut key = String::new();
        for (_, value, _) in note.fields.iter().filter(|f| f.2) {
            if !key.is_empty() {
                key.push('|');
            }
            key.push_str(&lossy(value, 160));
        }
        let kind = note.shape.kind;
        if kind.starts_with("ras.") {
            for (kind, key, fact) in self.report.see(kind, Arc::unwrap_or_clone(sample())) {
                let fact = Arc::new(fact);
                self.add(p, kind, dev, key, &|| Arc::clone(&fact));
            }
            return;
        }
        let process = &mut self.processes[p];
        let Some(repeat) = repeat else {
            process.dropped += u64::from(!process.ledger.add(kind, dev, key, sample));
            return;
        };
        let places: Vec<&Place<'_>> = std::iter::once(place).chain(repeat.first.iter().take(repeat.count as usize)).collect();
        let first = places.iter().map(|place| (base.mark(place), || Arc::new(other(place))));
        if !process.ledger.add_all(kind, dev, key, repeat.count + 1, first, || Arc::new(other(&repeat.last))) {
            process.dropped += repeat.count + 1;
        }
    }

    /// What a note proves of its communicator.
    fn stage(&mut self, p: usize, tid: u32, dev: Option<u16>, note: &Note<'_>, sample: Make<'_>) -> Option<usize> {
        let stage = note.shape.stage.filter(|s| *s >= Stage::Network)?;
        let c = self.comm_for_stage(p, tid, dev, stage)?;
        let comm = &mut self.processes[p].comms[c];
        comm.see(stage);
        if note.shape.kind == "init.ring_order" && comm.nranks.is_none() {
            comm.nranks = note.fields.get("list").and_then(|list| ring_size(&lossy(list, 160)));
        }
        if stage == Stage::Network
            && let Some(net) = note.fields.get("net")
        {
            comm.net = Some((lossy(net, 160), sample()));
        }
        begin(comm, sample);
        Some(c)
    }

    /// The last record of every communicator that the block told of.
    fn touch_late(&mut self, late: &[((usize, usize), Said<'_, '_>)], parsed: &Parsed<'_>, base: Base) {
        for ((p, c), said) in late {
            let tid = thread(said.item.source.map(|s| &parsed.sources[s as usize]));
            self.processes[*p].comms[*c].last = Some(Arc::new(sample(said.item, said.place, tid, base)));
        }
    }

    /// The communicator that a line of thread `tid` belongs to; opened if none is under way there.
    fn comm_for_stage(&mut self, p: usize, tid: u32, dev: Option<u16>, stage: Stage) -> Option<usize> {
        if let Some(&c) = self.current.get(&(p, tid)) {
            let comm = &self.processes[p].comms[c];
            // The next communicator of the same thread begins with its network; a lazy connection belongs to the last.
            let over = comm.complete.is_some() || comm.end.is_some();
            if !(over && stage == Stage::Network) {
                return Some(c);
            }
        } else if stage != Stage::Network {
            // A proxy or service thread, or a paste without thread ids: the newest open communicator of the device.
            let comms = &self.processes[p].comms;
            let open = comms.iter().rposition(|c| c.complete.is_none() && c.end.is_none() && (c.dev == dev || dev.is_none()));
            if let Some(c) = open.or_else(|| comms.iter().rposition(|c| c.dev == dev || dev.is_none())) {
                return Some(c);
            }
        }
        self.open(p, tid, dev)
    }

    fn open(&mut self, p: usize, tid: u32, dev: Option<u16>) -> Option<usize> {
        let comms = &mut self.processes[p].comms;
        if comms.len() >= MAX_COMMS {
            self.processes[p].dropped += 1;
            return None;
        }
        comms.push(CommLog { stream: self.stream, tid, dev, ..CommLog::default() });
        let c = comms.len() - 1;
        self.current.insert((p, tid), c);
        Some(c)
    }

    fn init(&mut self, p: usize, tid: u32, dev: Option<u16>, init: &Init<'_>, sample: Make<'_>) -> Option<usize> {
        let comms = &self.processes[p].comms;
        let by_ptr = comms.iter().rposition(|c| init.comm != 0 && c.ptr == init.comm && c.end.is_none());
        let pending = self.current.get(&(p, tid)).copied().filter(|c| comms[*c].ptr == 0 && comms[*c].complete.is_none());
        let found = match init.phase {
            // The same address with another START is a new communicator at a freed address.
            Phase::Start | Phase::Named => pending.or_else(|| by_ptr.filter(|c| comms[*c].start.is_none() && comms[*c].complete.is_none())),
            Phase::Complete => by_ptr.filter(|c| comms[*c].complete.is_none()).or(pending),
            Phase::Layout => by_ptr.or(pending),
            Phase::Destroy | Phase::Abort => by_ptr,
        };
        let c = found.or_else(|| self.open(p, tid, dev))?;
        self.current.insert((p, tid), c);
        let comm = &mut self.processes[p].comms[c];
        comm.ptr = init.comm;
        comm.comm_id = init.comm_id.or(comm.comm_id);
        comm.rank = init.rank.or(comm.rank);
        comm.nranks = init.nranks.or(comm.nranks);
        comm.cuda_dev = init.cuda_dev.or(comm.cuda_dev);
        comm.nvml_dev = init.nvml_dev.or(comm.nvml_dev);
        comm.parent = init.parent.or(comm.parent);
        comm.color = init.color.or(comm.color);
        comm.nnodes = init.nnodes.or(comm.nnodes);
        comm.local_ranks = init.local_ranks.or(comm.local_ranks);
        if !init.bus_id.is_empty() {
            comm.bus_id = Some(lossy(init.bus_id, 20));
        }
        if let Some(stage) = init.phase.stage() {
            comm.see(stage);
        }
        match init.phase {
            Phase::Start => comm.start = Some(sample()),
            Phase::Complete => comm.complete = Some(sample()),
            Phase::Destroy => comm.end = Some((false, sample())),
            Phase::Abort => comm.end = Some((true, sample())),
            Phase::Layout | Phase::Named => {}
        }
        begin(comm, sample);
        Some(c)
    }

    fn channel(&mut self, p: usize, tid: u32, dev: Option<u16>, line: &Channel<'_>, sample: Make<'_>) -> Option<usize> {
        let me = if line.direction == Direction::Receive { line.to } else { line.from };
        let by_ptr = line.comm.and_then(|ptr| self.processes[p].comms.iter().rposition(|c| c.ptr == ptr && c.end.is_none()));
        let fits = |c: &CommLog| c.rank.is_none_or(|r| r == me);
        let by_thread = self.current.get(&(p, tid)).copied().filter(|c| fits(&self.processes[p].comms[*c]));
        let by_rank = || self.processes[p].comms.iter().rposition(|c| fits(c) && (c.dev == dev || dev.is_none()));
        let c = by_ptr.or(by_thread).or_else(by_rank).or_else(|| self.open(p, tid, dev))?;
        self.processes[p].rccl |= line.nranks.is_some();
        let comm = &mut self.processes[p].comms[c];
        comm.nranks = comm.nranks.or(line.nranks);
        comm.see(Stage::Connecting);
        if comm.rank.is_none() && comm.ptr == 0 {
            comm.rank = Some(me);
        }
        begin(comm, sample);
        let direction = match line.direction {
            Direction::Send => "send",
            Direction::Receive => "receive",
            Direction::Local => "local",
        };
        let via = String::from_utf8_lossy(&line.text[..line.text.len().min(80)]);
        if let Some(known) = comm.channels.iter_mut().find(|k| k.from == line.from && k.to == line.to && k.direction == direction && k.via == via) {
            known.count += 1;
            return Some(c);
        }
        if comm.channels.len() >= MAX_CHANNELS {
            self.processes[p].dropped += 1;
            return Some(c);
        }
        comm.channels.push(ChannelCount { from: line.from, to: line.to, direction, via: via.into_owned(), net: lossy(line.net, 60), count: 1, first: sample() });
        Some(c)
    }

    #[inline(always)]
    fn call(&mut self, call: &Call, lately: &mut Lately, (seen, sources): (&[SeenSource<'_>], &[Option<usize>]), base: Base) {
        let place = lately.place(call);
        let (p, c) = match place {
            Some((key, p, c)) if *key == (call.source, call.call.comm) => (*p, *c),
            _ => {
                let Some(p) = sources[call.source as usize] else { return };
                let Some(c) = self.caller(p, call, &seen[call.source as usize]) else { return };
                *place = Some(((call.source, call.call.comm), p, c));
                (p, c)
            }
        };
        let line = base.line + u64::from(call.line) + 1;
        self.processes[p].comms[c].calls.push(KeptCall::new(&call.call, line, base.offset + u64::from(call.offset)));
    }

    /// The communicator that a call names; opened if it is new.
    #[inline(never)]
    fn caller(&mut self, p: usize, call: &Call, source: &SeenSource<'_>) -> Option<usize> {
        let found = self.processes[p].comms.iter().rposition(|c| c.ptr == call.call.comm && c.end.is_none());
        let c = found.or_else(|| {
            let c = self.open(p, thread(Some(source)), source.dev)?;
            self.processes[p].comms[c].ptr = call.call.comm;
            Some(c)
        })?;
        self.processes[p].comms[c].see(Stage::Collective);
        Some(c)
    }
}

/// Number of ranks in `0 1 3 2`: a ring passes each rank once. Long rings are cut and say nothing.
fn ring_size(list: &str) -> Option<u32> {
    let ranks: Vec<u32> = list.split_whitespace().map(|r| r.parse().ok()).collect::<Option<_>>()?;
    let distinct: BTreeSet<u32> = ranks.iter().copied().collect();
    let size = u32::try_from(ranks.len()).ok()?;
    (size > 1 && distinct.len() == ranks.len() && distinct.last() == Some(&(size - 1))).then_some(size)
}

/// The thread of a source. Pastes without thread ids tell threads apart by their device.
fn thread(source: Option<&SeenSource<'_>>) -> u32 {
    source.map_or(0, |s| if s.tid == 0 { 0x8000_0000 | s.dev.map_or(0xffff, u32::from) } else { s.tid })
}

fn note_wrap(process: &mut Process, wrap: &Wrap<'_>) {
    if let Some(rank) = hint(wrap)
        && process.wrap_ranks.len() < 32
    {
        process.wrap_ranks.insert(rank);
    }
    if !wrap.host.is_empty() && process.wrap_hosts.len() < 32 {
        process.wrap_hosts.insert(lossy(wrap.host, 120));
    }
}

/// Keeps a communicator's first record. Its last one is set when the block is done.
fn begin(comm: &mut CommLog, sample: Make<'_>) {
    if comm.first.is_none() {
        comm.first = Some(sample());
    }
}

/// An item as evidence, as it stands at `place`.
fn sample(item: &Item<'_>, place: &Place<'_>, tid: u32, base: Base) -> Sample {
    let mut sample = base.bare(place);
    sample.tid = tid;
    sample.level = item.level.map(Into::into);
    sample.file = lossy(item.file, 120);
    sample.repeated = item.wrap.repeated;
    if let Event::Note(note) = &item.event {
        sample.fields = note.fields.iter().map(|(name, value, _)| (name.to_owned(), lossy(value, 160))).collect();
    }
    sample
}

/// A message with its numbers, addresses and pointers replaced, so that equal warnings group.
pub fn template(msg: &[u8]) -> String {
    let text = lossy(msg, 160);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (head, tail) = rest.split_at(word);
        rest = tail;
        let hex = head.strip_prefix("0x").unwrap_or(head);
        if head.bytes().any(|b| b.is_ascii_digit()) && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            out.push('#');
            continue;
        }
        let mut in_number = false;
        for c in head.chars() {
            let digit = c.is_ascii_digit();
            if !digit {
                out.push(c);
            } else if !in_number {
                out.push('#');
            }
            in_number = digit;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn what_differs_between_ranks_is_replaced() {
        let of = |text: &str| template(text.as_bytes());
        assert_eq!(of("comm 0x55d0a0 busId 3b000 dev mlx5_1:1 rank 17"), "comm # busId # dev mlx#_#:# rank #");
        assert_eq!(of("comm 0x7fe1c8 busId 5e000 dev mlx5_0:1 rank 3"), "comm # busId # dev mlx#_#:# rank #");
        assert_eq!(of("größe 節點 3, dead beef"), "größe 節點 #, dead beef");
        assert_eq!(of(""), "");
    }
}
