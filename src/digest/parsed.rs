//! What the stateless half made of a block. Borrows everything.

use super::MAX_SAMPLES;
use crate::event::{self, Collective, Event};
use crate::line::{Header, Level, Record, Time, Wrap};
use ahash::AHashMap;

/// A block's events.
#[derive(Debug, Default)]
pub struct Parsed<'a> {
    /// The block.
    pub block: &'a [u8],
    /// Line ends in the block.
    pub newlines: u64,
    /// Records with a header.
    pub nccl_records: u64,
    /// The distinct sources of the block's headed records, with their last record.
    pub sources: Vec<SeenSource<'a>>,
    /// Their indices by process id, thread id and device.
    threads: AHashMap<(u32, u32, Option<u16>), Vec<u32>>,
    /// Events other than calls, in order.
    pub items: Vec<Item<'a>>,
    /// Further records of items that mean more than one record more, in order.
    pub again: Vec<Again>,
    /// Records that the ledger counts with an earlier item.
    pub repeats: Vec<Repeat>,
    /// Records that stand in no item and begin nothing in `again`.
    pub merged: u64,
    /// Calls, in order.
    pub calls: &'a [Call],
    /// Lines that may be facts of a host, in order.
    pub facts: Vec<FactLine<'a>>,
    /// Latest time that any record carried.
    pub last_time: Option<Time>,
    /// The last non-empty record: line, offset, text, time.
    pub last: Option<Place<'a>>,
}

/// A record's place and text.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Line ends before it in the block.
    pub line: u32,
    /// Byte offset in the block.
    pub offset: u32,
    /// Whole text.
    pub text: &'a [u8],
    /// Its time.
    pub time: Option<Time>,
}

/// Items among which one is looked for that a new one follows: start-ups tell facts in runs.
const LOOK_BACK: usize = 4;

/// Where a line of the block stands; small, repeats are many.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// Line ends before it in the block.
    pub line: u32,
    /// Byte offset in the block.
    pub offset: u32,
    /// Its length in bytes.
    pub len: u32,
}

/// A line that may be a fact of a host.
#[derive(Debug, Clone, Copy)]
pub struct FactLine<'a> {
    /// The record's place.
    pub place: Place<'a>,
    /// Its text without wrappers.
    pub msg: &'a [u8],
    /// Wrappers.
    pub wrap: Wrap<'a>,
}

/// A thread that spoke in the block.
#[derive(Debug, Clone, Copy)]
pub struct SeenSource<'a> {
    /// Host of the header.
    pub host: &'a [u8],
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Device.
    pub dev: Option<u16>,
    /// Label of the wrappers.
    pub label: &'a [u8],
    /// Wrappers of its first record.
    pub wrap: Wrap<'a>,
    /// A header of it showed RCCL.
    pub rccl: bool,
    /// The header may be the rest of a torn one.
    pub torn: bool,
    /// Records.
    pub records: u64,
    /// First record.
    pub first: Place<'a>,
    /// Last record.
    pub last: Place<'a>,
}

/// An event with its place.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// The record's place.
    pub place: Place<'a>,
    /// Index into `sources`; `None` for records without a header.
    pub source: Option<u32>,
    /// Wrappers.
    pub wrap: Wrap<'a>,
    /// Level of the header.
    pub level: Option<Level>,
    /// Source file of a WARN.
    pub file: &'a [u8],
    /// The message.
    pub msg: &'a [u8],
    /// What it says.
    pub event: Event<'a>,
    /// The same thread said the same again: index into `repeats`.
    pub again: Option<u32>,
    /// A later item tells the ledger of the same fact, so that this one is not its last record.
    pub followed: bool,
}

/// Records by which a thread says what one of its items says, one behind the other: further ones changed nothing but
/// counts. The ledger counts notes by their [`Repeat`].
#[derive(Debug, Clone, Copy)]
pub struct Again {
    /// Index into `items`.
    pub item: u32,
    /// How many records.
    pub count: u32,
    /// The first of them.
    pub first: Spot,
    /// The last of them, and the item that it says again.
    pub last: (Spot, u32),
}

/// Further records that say what an item says, for the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    /// How many.
    pub count: u64,
    /// The first of them; unused places hold the last one.
    pub first: [Spot; MAX_SAMPLES - 1],
    /// The last of them.
    pub last: Spot,
}

impl Repeat {
    pub(super) fn new(spot: Spot) -> Self {
        Self { count: 1, first: [spot; MAX_SAMPLES - 1], last: spot }
    }

    /// One record more.
    #[inline(always)]
    pub(super) fn add(&mut self, spot: Spot) {
        if let Some(slot) = self.first.get_mut(self.count as usize) {
            *slot = spot;
        }
        self.count += 1;
        self.last = spot;
    }
}

/// A call with its place; kept small, logs hold them by the million.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Index into `sources`.
    pub source: u32,
    /// Line ends before it in the block.
    pub line: u32,
    /// Byte offset in the block.
    pub offset: u32,
    /// The call.
    pub call: Collective,
}

/// The place of a record.
pub(super) fn place<'a>(record: &Record<'a>) -> Place<'a> {
    let time = record.header.as_ref().and_then(|h| h.time).or(record.wrap.time);
    Place { line: record.line, offset: record.offset, text: record.text, time }
}

/// What became of a record.
pub(super) enum Added {
    /// Nothing recognises it.
    Nothing,
    /// An event was kept.
    Event,
    /// It is a call.
    Call(Call),
}

impl<'a> Parsed<'a> {
    /// Nothing yet of a block.
    pub(super) fn of(block: &'a [u8]) -> Self {
        Self { block, ..Self::default() }
    }

    /// The place of a line of the block.
    pub fn place(&self, spot: Spot) -> Place<'a> {
        let start = spot.offset as usize;
        Place { line: spot.line, offset: spot.offset, text: self.block.get(start..start + spot.len as usize).unwrap_or_default(), time: None }
    }

    /// Counts records of a known source.
    pub(super) fn seen(&mut self, source: u32, records: u64, last: Place<'a>) {
        self.nccl_records += records;
        self.last = Some(last);
        let seen = &mut self.sources[source as usize];
        seen.records += records;
        seen.last = last;
    }

    /// Takes a record in.
    pub(super) fn add(&mut self, record: &Record<'a>, hint: &mut usize) -> Added {
        let place = place(record);
        self.last_time = self.last_time.max(place.time);
        self.last = Some(place);
        let source = record.header.as_ref().map(|header| {
            let index = self.source_index(header, &record.wrap, place, record.torn_start, hint);
            self.nccl_records += 1;
            let source = &mut self.sources[index];
            source.records += 1;
            source.rccl |= header.rccl;
            source.torn &= record.torn_start;
            source.last = place;
            if source.wrap.rank.is_none() {
                source.wrap = record.wrap;
            }
            index as u32
        });
        self.event(record, place, source)
    }

    pub(super) fn event(&mut self, record: &Record<'a>, place: Place<'a>, source: Option<u32>) -> Added {
        let Some(event) = event::parse(record) else { return Added::Nothing };
        if let (Event::Collective(call), Some(source)) = (event, source) {
            return Added::Call(Call { source, line: record.line, offset: record.offset, call });
        }
        self.keep(record, place, source, event);
        if matches!(event, Event::UnknownWarn) { Added::Nothing } else { Added::Event }
    }

    pub(super) fn keep(&mut self, record: &Record<'a>, place: Place<'a>, source: Option<u32>, event: Event<'a>) {
        let (level, file) = record.header.as_ref().map_or((None, &b""[..]), |h| (Some(h.level), h.file));
        if let Event::Note(note) = &event {
            let same = |item: &&mut Item<'_>| item.source == source && matches!(&item.event, Event::Note(other) if note.same_fact(other));
            if let Some(item) = self.items.iter_mut().rev().take(LOOK_BACK).find(same) {
                item.followed = true;
            }
        }
        self.items.push(Item { place, source, wrap: record.wrap, level, file, msg: record.msg, event, again: None, followed: false });
    }

    /// Takes back that the last event is a warning which nothing describes, if it is one and of this line.
    pub(super) fn forget_unknown(&mut self, line: u32) {
        if self.items.last().is_some_and(|i| i.place.line == line && matches!(i.event, Event::UnknownWarn)) {
            self.items.pop();
        }
    }

    /// The source of a header, made if it is new.
    pub(super) fn source_index(&mut self, header: &Header<'a>, wrap: &Wrap<'a>, place: Place<'a>, torn: bool, hint: &mut usize) -> usize {
        let same = |s: &SeenSource<'_>| s.pid == header.pid && s.tid == header.tid && s.dev == header.dev && s.host == header.host && s.label == wrap.label;
        let key = (header.pid, header.tid, header.dev);
        let known = if self.sources.get(*hint).is_some_and(same) {
            Some(*hint)
        } else {
            self.threads.get(&key).and_then(|list| list.iter().map(|i| *i as usize).find(|i| same(&self.sources[*i])))
        };
        let index = known.unwrap_or(self.sources.len());
        if known.is_none() {
            self.threads.entry(key).or_default().push(index as u32);
            self.sources.push(SeenSource {
                host: header.host,
                pid: header.pid,
                tid: header.tid,
                dev: header.dev,
                label: wrap.label,
                wrap: *wrap,
                rccl: header.rccl,
                torn,
                records: 0,
                first: place,
                last: place,
            });
        }
        *hint = index;
        index
    }
}
