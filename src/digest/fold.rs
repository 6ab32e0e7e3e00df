//! The ordered half: folds a stream's blocks into its processes.

use super::facts::{RawLine, Reader};
use super::ledger::Evidence;
use super::order::{Lately, Said, in_order, touch};
use super::parsed::{Item, Parsed, Place, SeenSource};
use super::ras::Report;
use super::sample::{Base, Told, lossy, push_lossy, template};
use super::{Ledger, Process, SettingKey, StreamInfo};
use crate::event::{Event, Note};
use crate::input::Span;
use crate::line::{RankHint, Wrap};
use ahash::AHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most processes of one stream that are told apart.
const MAX_PROCESSES: usize = 16_384;
/// Most processes with the same id that a torn host is compared with.
const MOST_ALIKE: usize = 64;
/// Most settings of one process.
pub(super) const MAX_SETTINGS: usize = 200;

/// Folds one stream. A clone can be finished to look at what was folded so far.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The stream's facts.
    pub info: StreamInfo,
    pub(super) stream: u32,
    pub(super) processes: Vec<Process>,
    index: AHashMap<(Vec<u8>, Vec<u8>, u32), usize>,
    /// Processes by their id, in order.
    by_pid: AHashMap<u32, Vec<usize>>,
    /// (process, thread) → the communicator that the thread works for.
    pub(super) current: AHashMap<(usize, u32), usize>,
    /// Room for the key of a note.
    key: String,
    report: Report,
    facts: Reader,
    lines: u64,
    /// The last line of the previous block has not ended yet.
    open: bool,
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
            key: String::new(),
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
            self.facts.see(&RawLine { line: at.line, offset: at.offset, text: fact.place.text, msg: fact.msg, wrap: &fact.wrap });
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
        self.touch_late(&late, &parsed.sources, base);
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
        self.processes.iter_mut().flat_map(|p| &mut p.comms).for_each(|comm| comm.calls.settle());
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
        let told = Told::new(item, said.place, tid, base);
        match item.event {
            Event::Version(v) => {
                self.processes[p].versions.insert((v.library, lossy(v.text, 80)));
                self.add(p, "init.version", dev, "", &told);
            }
            Event::Setting(s) => {
                let process = &mut self.processes[p];
                if process.settings.len() < MAX_SETTINGS {
                    let key = SettingKey { name: lossy(s.name, 80), value: lossy(s.value, 200), in_force: s.in_force };
                    process.settings.entry(key).or_insert_with(|| told.sample());
                } else {
                    process.dropped += 1;
                }
            }
            Event::Init(init) => return Some((p, self.init(p, tid, dev, &init, &told)?)),
            Event::Channel(channel) => return Some((p, self.channel(p, tid, dev, (&channel, said.count), &told)?)),
            Event::Note(note) => {
                if !said.again {
                    self.note(p, dev, &note, &told, (item, parsed));
                }
                return Some((p, self.stage(p, tid, dev, &note, &told)?));
            }
            Event::UnknownWarn => {
                let template = template(item.msg);
                self.add(p, "warn.unknown", dev, &template, &told);
            }
            Event::Collective(_) => {}
        }
        None
    }

    fn add(&mut self, p: usize, kind: &str, dev: Option<u16>, key: &str, record: &impl Evidence) {
        let process = &mut self.processes[p];
        process.dropped += u64::from(!process.ledger.add(kind, dev, key, record));
    }

    /// Counts a note, and the block's further records that say the same.
    fn note(&mut self, p: usize, dev: Option<u16>, note: &Note<'_>, told: &Told<'_, '_>, (item, parsed): (&Item<'_>, &Parsed<'_>)) {
        let kind = note.shape.kind;
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for (_, value, _) in note.fields.iter().filter(|f| f.2) {
            if !key.is_empty() {
                key.push('|');
            }
            push_lossy(&mut key, value, 160);
        }
        let repeat = item.again.and_then(|i| parsed.repeats.get(i as usize));
        if kind.starts_with("ras.") {
            for (kind, key, fact) in self.report.see(kind, Arc::unwrap_or_clone(told.sample())) {
                self.add(p, kind, dev, &key, &Arc::new(fact));
            }
        } else if let Some(repeat) = repeat {
            let further = repeat.first.iter().take(repeat.count as usize).map(|spot| told.at(parsed.place(*spot)));
            let process = &mut self.processes[p];
            let all = std::iter::once(told.at(item.place)).chain(further);
            if !process.ledger.add_all(kind, dev, &key, repeat.count + 1, all, Some(&told.at(parsed.place(repeat.last)))) {
                process.dropped += repeat.count + 1;
            }
        } else {
            let process = &mut self.processes[p];
            let last = (!item.followed).then_some(told);
            process.dropped += u64::from(!process.ledger.add_all(kind, dev, &key, 1, std::iter::once(told), last));
        }
        self.key = key;
    }
}

/// The thread of a source. Pastes without thread ids tell threads apart by their device.
pub(super) fn thread(source: Option<&SeenSource<'_>>) -> u32 {
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
