//! The stateless half: a block's records as events, ready for the ordered fold.

use super::facts::gate;
use super::memory::{How, LONGEST, Memory};
use super::parsed::{Added, Again, Call, FactLine, Item, Parsed, Repeat, Spot, place};
use crate::event::{self, Event, Tails, UserPatterns};
use crate::line::{Known, Record, SLOTS, Visitor, Wrap, front, visit};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use memchr::memmem::Finder;
use std::sync::LazyLock;

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
    let mut parsed = Parsed::of(block);
    if let Some(memory) = &memory {
        parsed.items.reserve(memory.most_items);
    }
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
        open: None,
        calling: true,
        user,
    };
    let newlines = visit(block, arena, &mut mapper);
    mapper.end_run();
    let calls = mapper.calls.into_bump_slice();
    if let Some(memory) = mapper.memory {
        memory.most_items = mapper.parsed.items.len().max(memory.most_items).min(4096);
    }
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
    run: Run,
    /// The last of `again`, while what its thread says may join it.
    open: Option<Open>,
    /// The last of them was a call.
    calling: bool,
    /// Patterns of the user.
    user: Option<&'p UserPatterns>,
}

/// Lines of one source in a row that are not counted yet.
#[derive(Default)]
struct Run {
    source: u32,
    records: u64,
    last: Option<Spot>,
}

/// What records must have in common with the last of `again` to join it: nothing came between that matters.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Open {
    source: u32,
    alike: u32,
    items: usize,
    calls: usize,
}

impl<'a> Visitor<'a> for &mut Mapper<'a, '_> {
    fn record(&mut self, record: Record<'a>) {
        self.end_run();
        if record.header.is_none() && is_fact(&record) {
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
            memory.keep(&record, self.hint as u32, known, &self.parsed.items);
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

/// Whether a record may be a fact of a host, as it stands or behind what may be the name of a host.
fn is_fact(record: &Record<'_>) -> bool {
    gate(record.text) || (record.msg.len() != record.text.len() && gate(record.msg)) || front(record.msg, &mut Wrap::default()).is_some_and(gate)
}

/// The spot of a line of a known prefix whose message has `len` bytes.
fn spot(known: &Known<'_, '_>, len: usize) -> Spot {
    Spot { line: known.line, offset: known.offset as u32, len: (known.message - known.offset + len) as u32 }
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
        let spot = spot(known, len);
        let source = self.slot(known, spot);
        self.broken = None;
        self.seen(source, spot);
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
    fn seen(&mut self, source: u32, spot: Spot) {
        if self.run.source != source {
            self.end_run();
            self.run.source = source;
        }
        self.run.records += 1;
        self.run.last = Some(spot);
    }

    fn end_run(&mut self) {
        if let Some(last) = self.run.last.take() {
            self.parsed.seen(self.run.source, self.run.records, self.parsed.place(last));
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
        let (at, len, line) = if let Some((at, len)) = memory.guess(rest, most) {
            (at, len, &rest[..len])
        } else {
            let len = memchr::memchr(b'\n', rest)?;
            let line = rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]);
            if line.len() >= most {
                return None;
            }
            (memory.find(line)?, len, line)
        };
        let spot = spot(known, line.len());
        let source = self.slot(known, spot);
        self.hint = source as usize;
        if self.repeat(at, source, spot) || self.first(at, source, (known, line, spot)) {
            self.seen(source, spot);
            return Some(len);
        }
        None
    }

    /// Takes a message that its thread said before in this block.
    #[inline(always)]
    fn repeat(&mut self, at: u32, source: u32, spot: Spot) -> bool {
        let Some(memory) = &mut self.memory else { return false };
        let (how, alike) = memory.how(at);
        let Some(said) = memory.said(at, source) else { return false };
        self.broken = None;
        let parsed = &mut *self.parsed;
        if matches!(how, How::Count | How::Stage) {
            if let Some(repeat) = parsed.repeats.get_mut(said.repeat as usize) {
                repeat.add(spot);
            } else {
                said.repeat = parsed.repeats.len() as u32;
                parsed.items[said.item as usize].again = Some(said.repeat);
                parsed.repeats.push(Repeat::new(spot));
            }
        }
        match how {
            How::Nothing | How::Count => parsed.merged += 1,
            How::Each => {
                let item = Item { place: parsed.place(spot), ..parsed.items[said.item as usize] };
                parsed.items.push(item);
            }
            How::Stage | How::Typed => {
                let open = Open { source, alike, items: parsed.items.len(), calls: self.calls.len() };
                match parsed.again.last_mut() {
                    Some(last) if self.open == Some(open) && alike != 0 => {
                        last.count += 1;
                        last.last = (spot, said.item);
                        parsed.merged += 1;
                    }
                    _ => parsed.again.push(Again { item: said.item, count: 1, first: spot, last: (spot, said.item) }),
                }
                self.open = Some(open);
            }
        }
        true
    }

    /// Takes a message that was read before, but not from this thread in this block.
    fn first(&mut self, at: u32, source: u32, (known, line, spot): (&Known<'a, '_>, &'a [u8], Spot)) -> bool {
        let Some(memory) = &self.memory else { return false };
        let msg = memory.msg(at, line);
        let place = self.parsed.place(spot);
        let record = Record {
            line: known.line,
            offset: spot.offset,
            text: place.text,
            wrap: *known.wrap,
            header: Some(*known.header),
            msg,
            torn_start: false,
            torn_end: false,
            follows_nccl: true,
        };
        let event = match memory.how(at).0 {
            How::Nothing => {
                self.broken = Some(record);
                return true;
            }
            How::Typed => event::parse(&record).filter(|e| !matches!(e, Event::Collective(_))),
            _ => memory.note(at, msg).map(Event::Note),
        };
        let Some(event) = event else { return false };
        self.broken = None;
        self.parsed.keep(&record, place, Some(source), event);
        if let Some(memory) = &mut self.memory {
            memory.say(at, source, self.parsed.items.len() as u32 - 1);
        }
        true
    }

    /// The source of a known prefix.
    #[inline(always)]
    fn slot(&mut self, known: &Known<'a, '_>, spot: Spot) -> u32 {
        let (generation, source) = self.slots[known.slot];
        if generation == known.generation && generation != 0 { source } else { self.new_slot(known, spot) }
    }

    #[inline(never)]
    fn new_slot(&mut self, known: &Known<'a, '_>, spot: Spot) -> u32 {
        let place = self.parsed.place(spot);
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

/// Frameworks quote the library's last warning behind `Last error:`; where a paste lost the line end between, it
/// stands in the same record.
fn quoted<'a>(record: &Record<'a>) -> Option<Record<'a>> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Last error:"));
    let at = MARK.find(record.msg)?;
    let msg = record.msg[at + MARK.needle().len()..].trim_ascii();
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
