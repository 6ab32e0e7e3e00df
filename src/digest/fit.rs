//! Keeps a process within its share of a digest: what matters least is dropped first, and counted.
//!
//! It is applied to what was folded, whether a digest is written or not: findings from digests and from logs are the
//! same.

use super::{CommLog, Entry, Process, disk};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bytes of one process with all its communicators, before they are compressed.
pub const MAX_PROCESS: usize = 100 * 1024;

/// Below this estimate a process surely fits.
const SURE: usize = 48 * 1024;

/// Calls that are still kept of communicators that are not the largest, then of all.
const FEW_CALLS: usize = 64;

/// Connections that are still kept of one communicator.
const FEW_CHANNELS: usize = 96;

/// Shrinks what a process keeps until it fits.
pub fn fit(process: &mut Process) {
    if estimate(process) <= SURE {
        return;
    }
    // To measure costs more than all steps: it is done again only where the estimate says that a step was enough.
    let mut over = disk::size(process).saturating_sub(MAX_PROCESS);
    for step in STEPS {
        if over == 0 {
            return;
        }
        let before = estimate(process);
        process.dropped += step(process);
        let saved = before.saturating_sub(estimate(process));
        over = if saved < over { over - saved } else { disk::size(process).saturating_sub(MAX_PROCESS) };
    }
    while disk::size(process) > MAX_PROCESS {
        let n = halve(process);
        if n == 0 {
            return;
        }
        process.dropped += n;
    }
}

/// In this order; each tells how many facts it dropped.
const STEPS: [fn(&mut Process) -> u64; 6] = [
    |p| {
        let largest = p.comms.iter().filter_map(|c| c.nranks).max();
        p.comms.iter_mut().filter(|c| c.nranks != largest).map(|c| shorten_calls(c, FEW_CALLS)).sum()
    },
    |p| p.ledger.entries_mut().iter_mut().map(Entry::forget_between).sum(),
    |p| p.comms.iter_mut().map(|c| shorten_channels(c, FEW_CHANNELS)).sum(),
    |p| p.comms.iter_mut().map(|c| shorten_calls(c, FEW_CALLS)).sum(),
    ended,
    |p| p.comms.iter_mut().map(|c| shorten_channels(c, FEW_CHANNELS / 4) + shorten_calls(c, FEW_CALLS / 4)).sum(),
];

fn shorten_calls(comm: &mut CommLog, most: usize) -> u64 {
    let over = comm.calls.tail.len().saturating_sub(most);
    comm.calls.tail.drain(..over);
    over as u64
}

fn shorten_channels(comm: &mut CommLog, most: usize) -> u64 {
    let over = comm.channels.len().saturating_sub(most);
    comm.channels.truncate(most);
    over as u64
}

/// Forgets communicators that ended in good order and are not among the largest, oldest first, half of them.
fn ended(process: &mut Process) -> u64 {
    let largest = process.comms.iter().filter_map(|c| c.nranks).max();
    let over = |c: &CommLog| c.nranks != largest && c.end.as_ref().is_some_and(|(aborted, _)| !aborted);
    let mut left = process.comms.iter().filter(|c| over(c)).count() / 2;
    let before = process.comms.len();
    process.comms.retain(|c| {
        let drop = left > 0 && over(c);
        left -= usize::from(drop);
        !drop
    });
    (before - process.comms.len()) as u64
}

/// Drops the later half of the most frequent kind of fact, or of the settings, or of the communicators.
fn halve(process: &mut Process) -> u64 {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in process.ledger.iter() {
        *kinds.entry(&entry.kind).or_default() += 1;
    }
    let most = kinds.into_iter().max_by_key(|(_, n)| *n).map(|(kind, n)| (kind.to_owned(), n)).filter(|(_, n)| *n > 4);
    if let Some((kind, n)) = most {
        let mut seen = 0;
        process.ledger.entries_mut().retain(|e| {
            seen += usize::from(e.kind == kind);
            e.kind != kind || seen <= n / 2
        });
        return (n - n / 2) as u64;
    }
    if process.settings.len() > 16 {
        let keep = process.settings.keys().nth(process.settings.len() / 2).cloned();
        return keep.map_or(0, |k| process.settings.split_off(&k).len() as u64);
    }
    let half = process.comms.len().div_ceil(2);
    let dropped = process.comms.len() - half;
    process.comms.truncate(half);
    if dropped > 0 {
        return dropped as u64;
    }
    let few = process.ledger.iter().count() / 2;
    let dropped = process.ledger.entries_mut().split_off(few).len();
    dropped as u64
}

/// About the bytes of a process on disk, at little cost.
fn estimate(process: &Process) -> usize {
    const RECORD: usize = 60;
    let mut last = std::ptr::null();
    let mut bytes = 0;
    process.each_sample(&mut |sample| {
        bytes += 8;
        // Records that are shared stand beside each other.
        if Arc::as_ptr(sample) != last {
            last = Arc::as_ptr(sample);
            bytes += RECORD + sample.text.len() + sample.fields.iter().map(|(n, v)| n.len() + v.len() + 8).sum::<usize>();
        }
    });
    bytes += process.ledger.iter().map(|e| 40 + e.kind.len() + e.key.len()).sum::<usize>();
    bytes += process.settings.keys().map(|k| 24 + k.name.len() + k.value.len()).sum::<usize>();
    let comm = |c: &CommLog| {
        500 + c.channels.iter().map(|k| 40 + k.via.len() + k.net.len()).sum::<usize>() + c.calls.tail.len() * 12 + c.calls.checkpoints.len() * 44 + c.calls.peers.len() * 60
    };
    bytes + process.comms.iter().map(comm).sum::<usize>()
}
