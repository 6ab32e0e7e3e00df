//! A process as a digest file holds it: records are listed once and named by their place in the list, streams are
//! left out (all records of a process are of one), and calls are told as differences.

use crate::digest::{ChannelCount, Checkpoint, CommLog, Entry, Field, KeptCall, Mark, Peer, Process, Sample, SampleLevel, Sequence, SettingKey};
use crate::event::{Function, Library};
use crate::line::Time;
use ahash::AHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Place of a record in [`Process::samples`].
pub type Ref = u32;

/// (line, offset, time, text, fields, thread, level, source file, repeated)
pub type WireSample = (u64, u64, Option<Time>, String, Vec<Field>, u32, Option<SampleLevel>, String, u32);

/// (kind, device, key, count, first, last, samples)
pub type WireEntry = (String, Option<u16>, String, u64, Ref, Ref, Vec<Ref>);

/// (from, to, direction, via, net, count, first)
pub type WireChannel = (u32, u32, u8, String, String, u32, Ref);

/// (function, count, data type, reduction, root)
pub type WireCall = (Function, u64, u8, u8, i32);

/// (rank, sent, received, last sent, last received)
pub type WirePeer = (i32, u64, u64, (u64, u64), (u64, u64));

/// One process.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WireProcess {
    pub stream: u32,
    pub label: String,
    pub host: String,
    pub pid: u32,
    pub rank_hint: Option<(bool, u32)>,
    pub wrap_hosts: Vec<String>,
    pub wrap_ranks: Vec<(bool, u32)>,
    pub rccl: bool,
    pub versions: Vec<(Library, String)>,
    pub records: u64,
    pub devices: Vec<u16>,
    pub dropped: u64,
    pub samples: Vec<WireSample>,
    pub first: Ref,
    pub last: Ref,
    pub settings: Vec<(String, String, bool, Ref)>,
    pub ledger: Vec<WireEntry>,
    pub comms: Vec<WireComm>,
}

/// One communicator.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireComm {
    pub ptr: u64,
    pub tid: u32,
    pub dev: Option<u16>,
    pub comm_id: Option<u64>,
    pub rank: Option<u32>,
    pub nranks: Option<u32>,
    pub cuda_dev: Option<u32>,
    pub nvml_dev: Option<u32>,
    pub bus_id: Option<String>,
    pub parent: Option<u64>,
    pub color: Option<i64>,
    pub nnodes: Option<u32>,
    pub local_ranks: Option<u32>,
    pub stages: u32,
    pub first: Option<Ref>,
    pub start: Option<Ref>,
    pub complete: Option<Ref>,
    pub end: Option<(bool, Ref)>,
    pub last: Option<Ref>,
    pub net: Option<(String, Ref)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<WireChannel>,
    #[serde(skip_serializing_if = "WireSequence::is_unused")]
    pub calls: WireSequence,
}

/// The calls of one communicator.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireSequence {
    pub len: u64,
    pub p2p: u64,
    pub others: u64,
    pub hash: u64,
    pub stride: u64,
    pub checkpoints: Vec<(u64, u64, u64)>,
    /// The distinct calls of `tail`.
    pub calls: Vec<WireCall>,
    /// Line and offset of the first kept call.
    pub from: (u64, u64),
    /// (place in `calls`, lines and bytes since the call before)
    pub tail: Vec<(u32, i64, i64)>,
    pub peers: Vec<WirePeer>,
    pub other_peers: u64,
}

impl WireSequence {
    fn is_unused(&self) -> bool {
        *self == Self::default()
    }
}

/// Names of directions, by their number.
const DIRECTIONS: [&str; 3] = ["send", "receive", "local"];

/// Lists the records of a process, each once.
#[derive(Default)]
struct Samples<'a> {
    known: AHashMap<&'a Sample, Ref>,
    list: Vec<WireSample>,
}

impl<'a> Samples<'a> {
    fn put(&mut self, sample: &'a Sample) -> Ref {
        if let Some(at) = self.known.get(sample) {
            return *at;
        }
        let Sample { at, text, fields, tid, level, file, repeated } = sample;
        let Mark { stream: _, line, offset, time } = *at;
        let place = self.list.len() as Ref;
        self.list.push((line, offset, time, text.clone(), fields.clone(), *tid, *level, file.clone(), *repeated));
        self.known.insert(sample, place);
        place
    }
}

/// A process as the file holds it; `stream` is its stream there.
pub fn freeze(process: &Process, stream: u32) -> WireProcess {
    // Named one by one, so that a new field cannot be forgotten.
    let Process { stream: _, label, host, pid, rank_hint, wrap_hosts, wrap_ranks, rccl, versions, records, first, last, devices, settings, ledger, comms, dropped } = process;
    let mut samples = Samples::default();
    let (first, last) = (samples.put(first), samples.put(last));
    let settings = settings.iter().map(|(key, s)| (key.name.clone(), key.value.clone(), key.in_force, samples.put(s))).collect();
    let ledger = ledger.iter().map(|e| freeze_entry(e, &mut samples)).collect();
    let comms = comms.iter().map(|c| freeze_comm(c, &mut samples)).collect();
    WireProcess {
        stream,
        label: label.clone(),
        host: host.clone(),
        pid: *pid,
        rank_hint: *rank_hint,
        wrap_hosts: wrap_hosts.iter().cloned().collect(),
        wrap_ranks: wrap_ranks.iter().copied().collect(),
        rccl: *rccl,
        versions: versions.iter().cloned().collect(),
        records: *records,
        devices: devices.iter().copied().collect(),
        dropped: *dropped,
        samples: samples.list,
        first,
        last,
        settings,
        ledger,
        comms,
    }
}

fn freeze_entry<'a>(entry: &'a Entry, samples: &mut Samples<'a>) -> WireEntry {
    let Entry { kind, dev, key, count, first, last, samples: kept } = entry;
    let (first, last) = (samples.put(first), samples.put(last));
    let kept = kept.iter().map(|s| samples.put(s)).collect();
    (kind.clone(), *dev, key.clone(), *count, first, last, kept)
}

fn freeze_comm<'a>(comm: &'a CommLog, samples: &mut Samples<'a>) -> WireComm {
    let CommLog {
        stream: _,
        ptr,
        tid,
        dev,
        comm_id,
        rank,
        nranks,
        cuda_dev,
        nvml_dev,
        bus_id,
        parent,
        color,
        nnodes,
        local_ranks,
        stages,
        first,
        start,
        complete,
        end,
        last,
        net,
        channels,
        calls,
    } = comm;
    let mut put = |sample: &'a Option<Arc<Sample>>| sample.as_ref().map(|s| samples.put(s));
    let (first, start, complete, last) = (put(first), put(start), put(complete), put(last));
    let channel = |c: &'a ChannelCount, samples: &mut Samples<'a>| {
        let ChannelCount { from, to, direction, via, net, count, first } = c;
        let direction = DIRECTIONS.iter().position(|d| d == direction).unwrap_or_default() as u8;
        (*from, *to, direction, via.clone(), net.clone(), *count, samples.put(first))
    };
    WireComm {
        ptr: *ptr,
        tid: *tid,
        dev: *dev,
        comm_id: *comm_id,
        rank: *rank,
        nranks: *nranks,
        cuda_dev: *cuda_dev,
        nvml_dev: *nvml_dev,
        bus_id: bus_id.clone(),
        parent: *parent,
        color: *color,
        nnodes: *nnodes,
        local_ranks: *local_ranks,
        stages: *stages,
        first,
        start,
        complete,
        end: end.as_ref().map(|(aborted, s)| (*aborted, samples.put(s))),
        last,
        net: net.as_ref().map(|(name, s)| (name.clone(), samples.put(s))),
        channels: channels.iter().map(|c| channel(c, samples)).collect(),
        calls: freeze_calls(calls),
    }
}

fn freeze_calls(calls: &Sequence) -> WireSequence {
    let Sequence { len, p2p, others, hash, checkpoints, stride, tail: kept, peers, other_peers, last_peer: _ } = calls;
    let mut known: AHashMap<WireCall, u32> = AHashMap::new();
    let mut list = Vec::new();
    let from = kept.front().map_or((0, 0), |c| (c.line, c.offset));
    let mut before = from;
    let mut tail = Vec::with_capacity(kept.len());
    for call in kept {
        let KeptCall { function, count, datatype, op, root, line, offset } = *call;
        let key = (function, count, datatype, op, root);
        let place = *known.entry(key).or_insert_with(|| {
            list.push(key);
            list.len() as u32 - 1
        });
        tail.push((place, line.wrapping_sub(before.0) as i64, offset.wrapping_sub(before.1) as i64));
        before = (line, offset);
    }
    WireSequence {
        len: *len,
        p2p: *p2p,
        others: *others,
        hash: *hash,
        stride: *stride,
        checkpoints: checkpoints.iter().map(|c| (c.hash, c.line, c.offset)).collect(),
        calls: list,
        from,
        tail,
        peers: peers.iter().map(|p| (p.rank, p.sent, p.received, p.last_sent, p.last_received)).collect(),
        other_peers: *other_peers,
    }
}

/// A process of stream `stream`, from what was [checked](super::check::process).
pub fn thaw(wire: WireProcess, stream: u32) -> Process {
    let samples: Vec<Arc<Sample>> = wire.samples.into_iter().map(|s| Arc::new(thaw_sample(s, stream))).collect();
    let get = |at: Ref| Arc::clone(&samples[at as usize]);
    let mut process = Process {
        stream,
        label: wire.label,
        host: wire.host,
        pid: wire.pid,
        rank_hint: wire.rank_hint,
        wrap_hosts: wire.wrap_hosts.into_iter().collect(),
        wrap_ranks: wire.wrap_ranks.into_iter().collect(),
        rccl: wire.rccl,
        versions: wire.versions.into_iter().collect(),
        records: wire.records,
        first: get(wire.first),
        last: get(wire.last),
        devices: wire.devices.into_iter().collect(),
        settings: wire.settings.into_iter().map(|(name, value, in_force, s)| (SettingKey { name, value, in_force }, get(s))).collect(),
        ledger: crate::digest::Ledger::default(),
        comms: wire.comms.into_iter().map(|c| thaw_comm(c, stream, &get)).collect(),
        dropped: wire.dropped,
    };
    let entries = process.ledger.entries_mut();
    entries.reserve_exact(wire.ledger.len());
    for (kind, dev, key, count, first, last, kept) in wire.ledger {
        let entry = Entry { kind, dev, key, count, first: get(first), last: get(last), samples: kept.into_iter().map(get).collect() };
        process.ledger.put(entry);
    }
    process
}

fn thaw_sample((line, offset, time, text, fields, tid, level, file, repeated): WireSample, stream: u32) -> Sample {
    Sample { at: Mark { stream, line, offset, time }, text, fields, tid, level, file, repeated }
}

fn thaw_comm(wire: WireComm, stream: u32, get: &dyn Fn(Ref) -> Arc<Sample>) -> CommLog {
    let channel = |(from, to, direction, via, net, count, first): WireChannel| ChannelCount {
        from,
        to,
        direction: DIRECTIONS.get(direction as usize).copied().unwrap_or(DIRECTIONS[0]),
        via,
        net,
        count,
        first: get(first),
    };
    CommLog {
        stream,
        ptr: wire.ptr,
        tid: wire.tid,
        dev: wire.dev,
        comm_id: wire.comm_id,
        rank: wire.rank,
        nranks: wire.nranks,
        cuda_dev: wire.cuda_dev,
        nvml_dev: wire.nvml_dev,
        bus_id: wire.bus_id,
        parent: wire.parent,
        color: wire.color,
        nnodes: wire.nnodes,
        local_ranks: wire.local_ranks,
        stages: wire.stages,
        first: wire.first.map(get),
        start: wire.start.map(get),
        complete: wire.complete.map(get),
        end: wire.end.map(|(aborted, s)| (aborted, get(s))),
        last: wire.last.map(get),
        net: wire.net.map(|(name, s)| (name, get(s))),
        channels: wire.channels.into_iter().map(channel).collect(),
        calls: thaw_calls(wire.calls),
    }
}

fn thaw_calls(wire: WireSequence) -> Sequence {
    let mut at = wire.from;
    let call = |(place, lines, bytes): (u32, i64, i64)| {
        let (function, count, datatype, op, root) = wire.calls[place as usize];
        at = (at.0.wrapping_add(lines as u64), at.1.wrapping_add(bytes as u64));
        KeptCall { function, count, datatype, op, root, line: at.0, offset: at.1 }
    };
    Sequence {
        len: wire.len,
        p2p: wire.p2p,
        others: wire.others,
        hash: wire.hash,
        checkpoints: wire.checkpoints.into_iter().map(|(hash, line, offset)| Checkpoint { hash, line, offset }).collect(),
        stride: wire.stride,
        tail: wire.tail.into_iter().map(call).collect(),
        peers: wire.peers.into_iter().map(|(rank, sent, received, last_sent, last_received)| Peer { rank, sent, received, last_sent, last_received }).collect(),
        other_peers: wire.other_peers,
        last_peer: 0,
    }
}
