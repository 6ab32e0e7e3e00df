//! Holds what a digest file says to the bounds that the fold keeps, so that a file from an untrusted host can do no
//! more than a log from there.

use super::wire::{Ref, WireComm, WireProcess, WireSample, WireSequence};
use crate::digest::comm::{MAX_CHANNELS, MAX_COMMS};
use crate::digest::fold::MAX_SETTINGS;
use crate::digest::ledger::{MAX_ENTRIES, MAX_SAMPLES};
use crate::digest::sequence::{KEPT_CALLS, MAX_CHECKPOINTS, MAX_PEERS};
use crate::digest::{HostFacts, MAX_ADDRESSES, MAX_BANDWIDTHS, MAX_BRIDGES, MAX_COMMANDS, MAX_GIDS, MAX_GPUS, MAX_HCAS, MAX_INTERFACES, MAX_PORTS, MAX_TEXT, StreamInfo};

/// Longest text of any field, in bytes. The fold cuts at bytes of the log, of which each may become a replacement
/// character of three.
const MAX_STRING: usize = 3 * MAX_TEXT + 8;

/// Longest path and problem of a stream.
const MAX_PATH: usize = 16 * 1024;

/// Fields of one record; a message format has no more than twelve, and what is read in context adds a few.
const MAX_FIELDS: usize = 64;

/// Records of one process: every fact has at most first, last and its samples.
const MAX_RECORDS: usize = MAX_ENTRIES * (MAX_SAMPLES + 2) + MAX_SETTINGS + MAX_COMMS * 6 + MAX_COMMS * MAX_CHANNELS;

/// Greatest count, line and offset: sums of a million of them do not overflow.
const MAX_NUMBER: u64 = 1 << 43;

/// What is wrong with it, in a few words.
pub type Wrong = &'static str;

type Checked = Result<(), Wrong>;

fn hold(good: bool, wrong: Wrong) -> Checked {
    if good { Ok(()) } else { Err(wrong) }
}

fn number(n: u64) -> Checked {
    hold(n <= MAX_NUMBER, "a number is out of range")
}

fn numbers(list: impl IntoIterator<Item = u64>) -> Checked {
    list.into_iter().try_for_each(number)
}

fn text(text: &str) -> Checked {
    hold(text.len() <= MAX_STRING, "a text is too long")
}

/// Checks a stream.
pub fn stream(info: &StreamInfo) -> Checked {
    let texts = [&info.path, &info.from].into_iter().chain(&info.problem);
    hold(texts.into_iter().all(|t| t.len() <= MAX_PATH), "a path is too long")?;
    numbers([info.bytes, info.lines, info.nccl_lines, info.events])?;
    info.last.iter().try_for_each(|s| text(&s.text).and(numbers([s.at.line, s.at.offset])))
}

/// Checks what is known of a host.
pub fn host(facts: &mut HostFacts) -> Checked {
    let lists = [
        (facts.commands.len(), MAX_COMMANDS),
        (facts.interfaces.len(), MAX_INTERFACES),
        (facts.hcas.len(), MAX_HCAS),
        (facts.gpus.len(), MAX_GPUS),
        (facts.matrix.len(), MAX_GPUS * 8),
        (facts.acs.len(), MAX_BRIDGES),
        (facts.bridges.len(), MAX_BRIDGES),
        (facts.bandwidths.len(), MAX_BANDWIDTHS),
    ];
    hold(lists.iter().all(|(n, most)| n <= most), "a host has too many facts")?;
    hold(facts.interfaces.iter().all(|i| i.addresses.len() <= MAX_ADDRESSES) && facts.hcas.iter().all(|h| h.ports.len() <= MAX_PORTS), "a host has too many facts")?;
    hold(facts.hcas.iter().flat_map(|h| &h.ports).map(|p| p.gids.len()).sum::<usize>() <= MAX_GIDS, "a host has too many facts")?;
    number(facts.dropped).and(text(&facts.host))?;
    let mut good = Ok(());
    facts.each_line(&mut |line| good = good.and(numbers([line.line, line.offset])).and(text(&line.text)));
    good
}

/// Checks a process of a digest with so many streams.
pub fn process(process: &WireProcess, streams: usize) -> Checked {
    hold((process.stream as usize) < streams, "a process belongs to no stream")?;
    hold(process.samples.len() <= MAX_RECORDS, "there are too many records")?;
    process.samples.iter().try_for_each(sample)?;
    let known = |at: Ref| hold((at as usize) < process.samples.len(), "a record is missing");
    let strings = [&process.label, &process.host].into_iter().chain(&process.wrap_hosts).chain(process.versions.iter().map(|(_, v)| v));
    strings.into_iter().try_for_each(|t| text(t))?;
    hold(process.wrap_hosts.len() <= 64 && process.wrap_ranks.len() <= 64 && process.devices.len() <= 65_536, "a process has too many names")?;
    numbers([process.records, process.dropped])?;
    [process.first, process.last].into_iter().try_for_each(known)?;
    hold(process.settings.len() <= MAX_SETTINGS, "there are too many settings")?;
    for (name, value, _, at) in &process.settings {
        text(name).and(text(value)).and(known(*at))?;
    }
    hold(process.ledger.len() <= MAX_ENTRIES, "there are too many facts")?;
    for (kind, _, key, count, first, last, kept) in &process.ledger {
        text(kind).and(text(key)).and(number(*count))?;
        hold(!kept.is_empty() && kept.len() <= MAX_SAMPLES, "a fact has no records, or too many")?;
        [*first, *last].iter().chain(kept).try_for_each(|at| known(*at))?;
    }
    hold(process.comms.len() <= MAX_COMMS, "there are too many communicators")?;
    process.comms.iter().try_for_each(|c| comm(c, &known))
}

fn sample((line, offset, time, whole, fields, _, _, file, _): &WireSample) -> Checked {
    numbers([*line, *offset, time.map_or(0, |t| t.micros.unsigned_abs() >> 16)])?;
    text(whole).and(text(file))?;
    hold(fields.len() <= MAX_FIELDS, "a record has too many fields")?;
    fields.iter().try_for_each(|(name, value)| text(name).and(text(value)))
}

fn comm(comm: &WireComm, known: &dyn Fn(Ref) -> Checked) -> Checked {
    comm.bus_id.iter().chain(comm.net.iter().map(|(name, _)| name)).try_for_each(|t| text(t))?;
    let named = [comm.first, comm.start, comm.complete, comm.end.map(|e| e.1), comm.last, comm.net.as_ref().map(|n| n.1)];
    named.into_iter().flatten().try_for_each(known)?;
    hold(comm.channels.len() <= MAX_CHANNELS, "there are too many connections")?;
    for (_, _, _, via, net, _, first) in &comm.channels {
        text(via).and(text(net)).and(known(*first))?;
    }
    calls(&comm.calls)
}

fn calls(calls: &WireSequence) -> Checked {
    let odd = "the calls contradict each other";
    numbers([calls.len, calls.p2p, calls.others, calls.other_peers, calls.from.0, calls.from.1])?;
    hold(calls.tail.len() <= KEPT_CALLS && calls.tail.len() as u64 <= calls.len && calls.calls.len() <= KEPT_CALLS, odd)?;
    // The comparison walks from checkpoint to checkpoint: their number must follow from the length.
    let marks = calls.len.checked_div(calls.stride).unwrap_or(0);
    hold((calls.stride == 0) == (calls.len == 0) && (calls.stride == 0 || calls.stride.is_power_of_two()), odd)?;
    hold(calls.checkpoints.len() <= MAX_CHECKPOINTS && calls.checkpoints.len() as u64 == marks, odd)?;
    hold(calls.tail.iter().all(|(at, ..)| (*at as usize) < calls.calls.len()), odd)?;
    numbers(calls.checkpoints.iter().flat_map(|(_, line, offset)| [*line, *offset]))?;
    let mut at = (i128::from(calls.from.0), i128::from(calls.from.1));
    for (_, lines, bytes) in &calls.tail {
        at = (at.0 + i128::from(*lines), at.1 + i128::from(*bytes));
        hold([at.0, at.1].iter().all(|n| (0..=i128::from(MAX_NUMBER)).contains(n)), odd)?;
    }
    hold(calls.peers.len() <= MAX_PEERS && calls.peers.is_sorted_by(|a, b| a.0 < b.0), odd)?;
    numbers(calls.peers.iter().flat_map(|(_, sent, received, a, b)| [*sent, *received, a.0, a.1, b.0, b.1]))
}
