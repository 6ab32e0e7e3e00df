//! The stateless half: a block's records as events, ready for the ordered fold. Borrows everything.

use super::MAX_SAMPLES;
use super::facts::gate;
use super::memory::{LONGEST, Memory, What, trim_blanks};
use crate::event::{self, Collective, Event, Note, Tails, UserPatterns};
use crate::line::{Header, Known, Level, Record, SLOTS, Time, Visitor, Wrap, visit};
use ahash::AHashMap;
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// A block's events.
#[derive(Debug, Default)]
pub struct Parsed<'a> {
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
    pub again: Vec<Again<'a>>,
    /// Records that the ledger counts with an earlier item.
    pub repeats: Vec<Repeat<'a>>,
    /// How many of them stand only there.
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
}

/// A record by which a thread says what one of its items says. The ledger counts notes by their [`Repeat`].
#[derive(Debug, Clone, Copy)]
pub struct Again<'a> {
    /// Index into `items`.
    pub item: u32,
    /// The record's place.
    pub place: Place<'a>,
}

/// Further records that say what an item says, for the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Repeat<'a> {
    /// How many.
    pub count: u64,
    /// The first of them; unused places hold the last one.
    pub first: [Place<'a>; MAX_SAMPLES - 1],
    /// The last of them.
    pub last: Place<'a>,
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

/// Reads a block. Every event is an item or a call of its own.
pub fn map<'a>(block: &'a [u8], arena: &'a Bump) -> Parsed<'a> {
    map_with(block, arena, None, None)
}

/// Reads a block and looks for a user's patterns in every record that is no call. With a memory, what a thread says
/// again becomes a [`Repeat`] where the fold loses nothing by it.
pub fn map_with<'a>(block: &'a [u8], arena: &'a Bump, user: Option<&UserPatterns>, mut memory: Option<&mut Memory>) -> Parsed<'a> {
    if let Some(memory) = &mut memory {
        memory.begin_block();
    }
    let mut parsed = Parsed::default();
    let mut mapper = Mapper {
        parsed: &mut parsed,
        calls: BumpVec::new_in(arena),
        arena,
        hint: 0,
        broken: None,
        slots: [(0, 0); SLOTS],
        most_calls: block.len() / SHORTEST_CALL,
        // A user's patterns want to see every record.
        memory: memory.filter(|_| user.is_none()),
        tails: Tails::default(),
        run: Run::default(),
        calling: true,
        user,
    };
    let newlines = visit(block, arena, &mut mapper);
    mapper.end_run();
    let calls = mapper.calls.into_bump_slice();
    parsed.newlines = u64::from(newlines);
    parsed.calls = calls;
    parsed
}

/// No call's line is shorter, in bytes: names, two pointers and the words between.
const SHORTEST_CALL: usize = 128;

/// Collects a block's records.
struct Mapper<'a, 'p> {
    parsed: &'p mut Parsed<'a>,
    calls: BumpVec<'a, Call>,
    /// Room for this many calls is enough for the block.
    most_calls: usize,
    arena: &'a Bump,
    /// Source of the last headed record.
    hint: usize,
    /// A headed record that nothing recognised: the next line may be its rest.
    broken: Option<Record<'a>>,
    /// Per known prefix: generation for which it was looked up, and its source.
    slots: [(u32, u32); SLOTS],
    /// Messages that were read before.
    memory: Option<&'p mut Memory>,
    /// Ends of its calls.
    tails: Tails<'a>,
    /// The last lines of a known prefix.
    run: Run<'a>,
    /// The last of them was a call.
    calling: bool,
    /// Patterns of the user.
    user: Option<&'p UserPatterns>,
}

/// Lines of one source in a row that are not counted yet.
#[derive(Default)]
struct Run<'a> {
    source: u32,
    records: u64,
    last: Option<Place<'a>>,
}

impl<'a> Visitor<'a> for &mut Mapper<'a, '_> {
    fn record(&mut self, record: Record<'a>) {
        self.end_run();
        if record.header.is_none() && (gate(record.text) || (record.msg.len() != record.text.len() && gate(record.msg))) {
            self.parsed.facts.push(FactLine { place: place(&record), msg: record.msg, wrap: record.wrap });
        }
        if let (Some(head), None) = (&self.broken, &record.header)
            && event::parse(&record).is_none()
        {
            let whole = join(head, &record, self.arena);
            if let Some(event) = event::parse(&whole).filter(|e| !matches!(e, Event::UnknownWarn | Event::Collective(_))) {
                self.parsed.forget_unknown(whole.line);
                self.parsed.keep(&whole, place(&whole), Some(self.hint as u32), event);
                self.broken = None;
                return;
            }
        }
        let known = match self.parsed.add(&record, &mut self.hint) {
            Added::Nothing => false,
            Added::Event => true,
            Added::Call(call) => {
                self.push(call);
                self.broken = None;
                return;
            }
        };
        if let Some(user) = self.user {
            self.own(&record, user);
        } else if let Some(memory) = &mut self.memory {
            let event = if known { self.parsed.items.len().checked_sub(1).map(|i| (i, &self.parsed.items[i].event)) } else { None };
            memory.keep(&record, self.hint as u32, event);
        }
        if record.header.is_none()
            && let Some(quoted) = quoted(&record)
        {
            self.parsed.event(&quoted, place(&quoted), None);
        }
        self.broken = (!known && record.header.is_some()).then_some(record);
    }

    #[inline(always)]
    fn quick(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        // Calls come in long stretches, and so does everything else.
        if self.calling
            && let Some(len) = self.call(known, rest)
        {
            return Some(len);
        }
        self.other(known, rest)
    }
}

fn known_place<'a>(known: &Known<'a, '_>, end: usize) -> Place<'a> {
    Place { line: known.line, offset: known.offset as u32, text: &known.block[known.offset..end], time: known.wrap.time }
}

impl<'a> Mapper<'a, '_> {
    /// Takes a line of a stretch without calls, or one that ends a stretch.
    #[inline(never)]
    fn other(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        let again = self.again(known, rest);
        self.calling = again.is_none();
        again.or_else(|| self.call(known, rest))
    }

    /// Takes a line that is a call: its length.
    #[inline(always)]
    fn call(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        let (call, len) = event::quick_collective(rest, known.slot, &mut self.tails)?;
        let place = known_place(known, known.message + len);
        let source = self.slot(known, place);
        self.broken = None;
        self.seen(source, place);
        self.push(Call { source, line: known.line, offset: known.offset as u32, call });
        Some(len)
    }

    /// Keeps what the user's patterns say of a record. A warning that they describe is no unknown one.
    fn own(&mut self, record: &Record<'a>, user: &UserPatterns) {
        let source = record.header.is_some().then_some(self.hint as u32);
        let mut first = true;
        user.each(record.msg, |note| {
            if std::mem::take(&mut first) {
                self.parsed.forget_unknown(record.line);
            }
            self.parsed.keep(record, place(record), source, Event::Note(note));
        });
    }

    /// Counts a line of a known prefix.
    #[inline(always)]
    fn seen(&mut self, source: u32, place: Place<'a>) {
        if self.run.source != source {
            self.end_run();
            self.run.source = source;
        }
        self.run.records += 1;
        self.run.last = Some(place);
    }

    fn end_run(&mut self) {
        if let Some(last) = self.run.last.take() {
            self.parsed.seen(self.run.source, self.run.records, last);
            self.run.records = 0;
        }
    }

    #[inline(always)]
    fn push(&mut self, call: Call) {
        if self.calls.capacity() == 0 {
            self.calls.reserve(self.most_calls);
        }
        self.calls.push(call);
    }

    /// Takes a line whose message was read before.
    fn again(&mut self, known: &Known<'a, '_>, rest: &'a [u8]) -> Option<usize> {
        let memory = self.memory.as_mut()?;
        // Bytes that the line may have behind its prefix.
        let most = LONGEST.saturating_sub(known.message - known.offset);
        let (at, len, line, msg) = if let Some((at, len, msg)) = memory.guess(rest, most) {
            (at, len, &rest[..len], msg)
        } else {
            let len = memchr::memchr(b'\n', rest)?;
            let line = rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]);
            if line.len() >= most {
                return None;
            }
            let msg = trim_blanks(line);
            (memory.find(line, msg)?, len, line, msg)
        };
        let place = known_place(known, known.message + line.len());
        let source = self.slot(known, place);
        self.hint = source as usize;
        let text = place.text;
        let record =
            || Record { line: known.line, offset: place.offset, text, wrap: *known.wrap, header: Some(*known.header), msg, torn_start: false, torn_end: false, follows_nccl: true };
        let memory = self.memory.as_mut()?;
        if let Some(item) = memory.item(at, source) {
            self.seen(source, place);
            self.broken = None;
            self.parsed.repeat(item, place);
            return Some(len);
        }
        let event = match memory.what(at) {
            What::Nothing => {
                self.seen(source, place);
                self.broken = Some(record());
                return Some(len);
            }
            What::Note(shape, spans) => Event::Note(Note { shape, fields: spans.of(msg) }),
            What::Typed => event::parse(&record()).filter(|e| !matches!(e, Event::Collective(_)))?,
        };
        self.seen(source, place);
        self.broken = None;
        self.parsed.keep(&record(), place, Some(source), event);
        if let Some(memory) = &mut self.memory {
            memory.said(at, source, self.parsed.items.len() - 1);
        }
        Some(len)
    }

    /// The source of a known prefix.
    fn slot(&mut self, known: &Known<'a, '_>, place: Place<'a>) -> u32 {
        let (generation, source) = self.slots[known.slot];
        if generation == known.generation && generation != 0 {
            return source;
        }
        let index = self.parsed.source_index(known.header, known.wrap, place, false, &mut self.hint);
        let source = &mut self.parsed.sources[index];
        source.torn = false;
        if source.wrap.rank.is_none() {
            source.wrap = *known.wrap;
        }
        self.slots[known.slot] = (known.generation, index as u32);
        index as u32
    }
}

fn place<'a>(record: &Record<'a>) -> Place<'a> {
    let time = record.header.as_ref().and_then(|h| h.time).or(record.wrap.time);
    Place { line: record.line, offset: record.offset, text: record.text, time }
}

/// What became of a record.
enum Added {
    /// Nothing recognises it.
    Nothing,
    /// An event was kept.
    Event,
    /// It is a call.
    Call(Call),
}

/// Frameworks quote the library's last warning behind `Last error:`; where a paste lost the line end between, it
/// stands in the same record.
fn quoted<'a>(record: &Record<'a>) -> Option<Record<'a>> {
    const MARK: &[u8] = b"Last error:";
    let at = memchr::memmem::find(record.msg, MARK)?;
    let msg = record.msg[at + MARK.len()..].trim_ascii();
    (!msg.is_empty()).then_some(Record { msg, ..*record })
}

/// A hard-wrapped paste breaks one record over two lines at a blank; a record that nothing recognises is tried with
/// the line behind it.
fn join<'a>(head: &Record<'a>, tail: &Record<'a>, arena: &'a Bump) -> Record<'a> {
    let glue = |a: &[u8], b: &[u8]| -> &'a [u8] {
        let mut whole = bumpalo::collections::Vec::with_capacity_in(a.len() + b.len() + 1, arena);
        whole.extend_from_slice(a);
        whole.push(b' ');
        whole.extend_from_slice(b);
        whole.into_bump_slice()
    };
    let tail_text = &tail.msg[..tail.msg.len().min(512)];
    Record { text: glue(head.text, tail_text), msg: glue(head.msg, tail_text), ..*head }
}

impl<'a> Parsed<'a> {
    /// Counts records of a known source.
    fn seen(&mut self, source: u32, records: u64, last: Place<'a>) {
        self.nccl_records += records;
        self.last = Some(last);
        let seen = &mut self.sources[source as usize];
        seen.records += records;
        seen.last = last;
    }

    /// The message of an item once more, at `place`.
    fn repeat(&mut self, index: usize, place: Place<'a>) {
        let item = &mut self.items[index];
        if let Event::Note(note) = &item.event {
            // The lines of a report belong together: each is seen in its turn.
            if note.shape.kind.starts_with("ras.") {
                let item = Item { place, ..*item };
                self.items.push(item);
                return;
            }
            let merged = note.shape.stage.is_none();
            let next = self.repeats.len() as u32;
            if let Some(repeat) = self.repeats.get_mut(*item.again.get_or_insert(next) as usize) {
                if let Some(slot) = repeat.first.get_mut(repeat.count as usize) {
                    *slot = place;
                }
                repeat.count += 1;
                repeat.last = place;
            } else {
                self.repeats.push(Repeat { count: 1, first: [place; MAX_SAMPLES - 1], last: place });
            }
            if merged {
                self.merged += 1;
                return;
            }
        }
        self.again.push(Again { item: index as u32, place });
    }

    /// Takes a record in.
    fn add(&mut self, record: &Record<'a>, hint: &mut usize) -> Added {
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

    fn event(&mut self, record: &Record<'a>, place: Place<'a>, source: Option<u32>) -> Added {
        let Some(event) = event::parse(record) else { return Added::Nothing };
        if let (Event::Collective(call), Some(source)) = (event, source) {
            return Added::Call(Call { source, line: record.line, offset: record.offset, call });
        }
        self.keep(record, place, source, event);
        if matches!(event, Event::UnknownWarn) { Added::Nothing } else { Added::Event }
    }

    fn keep(&mut self, record: &Record<'a>, place: Place<'a>, source: Option<u32>, event: Event<'a>) {
        let (level, file) = record.header.as_ref().map_or((None, &b""[..]), |h| (Some(h.level), h.file));
        self.items.push(Item { place, source, wrap: record.wrap, level, file, msg: record.msg, event, again: None });
    }

    /// Takes back that the last event is a warning which nothing describes, if it is one and of this line.
    fn forget_unknown(&mut self, line: u32) {
        if self.items.last().is_some_and(|i| i.place.line == line && matches!(i.event, Event::UnknownWarn)) {
            self.items.pop();
        }
    }

    /// The source of a header, made if it is new.
    fn source_index(&mut self, header: &Header<'a>, wrap: &Wrap<'a>, place: Place<'a>, torn: bool, hint: &mut usize) -> usize {
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
