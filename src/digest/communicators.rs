//! What a stream's records say of communicators.

use super::comm::{MAX_CHANNELS, MAX_COMMS};
use super::fold::{Folder, thread};
use super::ledger::Evidence;
use super::order::{Lately, Said};
use super::parsed::{Call, SeenSource};
use super::sample::{Base, Told, lossy};
use super::{ChannelCount, CommLog, KeptCall};
use crate::event::{Channel, Direction, Event, Init, Note, Phase, Stage};
use std::collections::BTreeSet;

impl Folder {
    /// What a note proves of its communicator.
    pub(super) fn stage(&mut self, p: usize, tid: u32, dev: Option<u16>, note: &Note<'_>, told: &Told<'_, '_>) -> Option<usize> {
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
            comm.net = Some((lossy(net, 160), told.sample()));
        }
        begin(comm, told);
        Some(c)
    }

    /// The last record of every communicator that the block told of.
    pub(super) fn touch_late(&mut self, late: &[((usize, usize), Said<'_, '_>)], sources: &[SeenSource<'_>], base: Base) {
        for ((p, c), said) in late {
            let (place, item) = said.last;
            let tid = thread(item.source.map(|s| &sources[s as usize]));
            self.processes[*p].comms[*c].last = Some(Told::new(item, place, tid, base).sample());
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

    pub(super) fn init(&mut self, p: usize, tid: u32, dev: Option<u16>, init: &Init<'_>, told: &Told<'_, '_>) -> Option<usize> {
        let comms = &self.processes[p].comms;
        let by_ptr = comms.iter().rposition(|c| init.comm != 0 && c.ptr == init.comm && c.end.is_none());
        let pending = self.current.get(&(p, tid)).copied().filter(|c| comms[*c].ptr == 0 && comms[*c].complete.is_none());
        // Up to 2.15 a thread of its own makes the communicator, and its first line with an address is the last: what it
        // said before went to the communicator that the main thread had begun on the device.
        let begun = || comms.iter().rposition(|c| c.ptr == 0 && c.complete.is_none() && c.end.is_none() && c.dev == dev && c.rank.is_some() && c.rank == init.rank);
        let found = match init.phase {
            // The same address with another START is a new communicator at a freed address.
            Phase::Start | Phase::Named => pending.or_else(|| by_ptr.filter(|c| comms[*c].start.is_none() && comms[*c].complete.is_none())),
            Phase::Complete => by_ptr.filter(|c| comms[*c].complete.is_none()).or(pending).or_else(begun),
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
            Phase::Start => comm.start = Some(told.sample()),
            Phase::Complete => comm.complete = Some(told.sample()),
            Phase::Destroy => comm.end = Some((false, told.sample())),
            Phase::Abort => comm.end = Some((true, told.sample())),
            Phase::Layout | Phase::Named => {}
        }
        begin(comm, told);
        Some(c)
    }

    pub(super) fn channel(&mut self, p: usize, tid: u32, dev: Option<u16>, (line, count): (&Channel<'_>, u32), told: &Told<'_, '_>) -> Option<usize> {
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
        begin(comm, told);
        let direction = match line.direction {
            Direction::Send => "send",
            Direction::Receive => "receive",
            Direction::Local => "local",
        };
        let via = String::from_utf8_lossy(&line.text[..line.text.len().min(80)]);
        if let Some(known) = comm.channels.iter_mut().find(|k| k.from == line.from && k.to == line.to && k.direction == direction && k.via == via) {
            known.count += count;
            return Some(c);
        }
        if comm.channels.len() >= MAX_CHANNELS {
            self.processes[p].dropped += u64::from(count);
            return Some(c);
        }
        comm.channels.push(ChannelCount { from: line.from, to: line.to, direction, via: via.into_owned(), net: lossy(line.net, 60), count, first: told.sample() });
        Some(c)
    }

    #[inline(always)]
    pub(super) fn call(&mut self, call: &Call, lately: &mut Lately, (seen, sources): (&[SeenSource<'_>], &[Option<usize>]), base: Base) {
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

/// Keeps a communicator's first record. Its last one is set when the block is done.
fn begin(comm: &mut CommLog, told: &Told<'_, '_>) {
    if comm.first.is_none() {
        comm.first = Some(told.sample());
    }
}

/// Whether the second of two records of a thread, with nothing of its process between them, changes no more than
/// counts. What [`Folder::stage`] and [`Folder::channel`] look at is equal in both.
pub(super) fn same_effect(before: &Event<'_>, event: &Event<'_>) -> bool {
    match (before, event) {
        (Event::Channel(a), Event::Channel(b)) => Channel { channel: b.channel, ..*a } == *b,
        (Event::Note(a), Event::Note(b)) => {
            let stage = a.shape.stage.is_some_and(|stage| stage > Stage::Network);
            stage && std::ptr::eq(a.shape, b.shape) && a.fields.get("list") == b.fields.get("list")
        }
        _ => false,
    }
}
