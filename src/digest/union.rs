//! Union of digests: disjoint by stream, and the same whatever the order and the stages.

use super::disk::{Packed, mark};
use super::{Digest, Process, StreamInfo};
use crate::input::natural_key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A digest to be joined.
#[derive(Debug)]
pub enum Part {
    /// Folded here.
    Folded(Digest),
    /// Read from a file.
    Packed(Packed),
}

/// Place of a stream: (part, number in it).
type Place = (usize, usize);

/// What orders streams. The last field tells those apart that share name and digest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    file: bool,
    name: Vec<(String, u64)>,
    path: String,
    from: Vec<(String, u64)>,
    mark: u64,
}

impl Part {
    fn streams(&self) -> &[StreamInfo] {
        match self {
            Self::Folded(digest) => &digest.streams,
            Self::Packed(packed) => &packed.streams,
        }
    }

    /// Takes the processes out, with the numbers that their streams get.
    fn processes(self, numbers: &[Option<u32>]) -> Vec<Process> {
        match self {
            Self::Packed(packed) => packed.unpack(numbers),
            Self::Folded(digest) => renumber(digest.processes, numbers),
        }
    }
}

fn renumber(processes: Vec<Process>, numbers: &[Option<u32>]) -> Vec<Process> {
    let renumbered = |mut p: Process| {
        let stream = numbers.get(p.stream as usize).copied().flatten()?;
        p.renumber(stream);
        Some(p)
    };
    processes.into_iter().filter_map(renumbered).collect()
}

impl Digest {
    /// Only the streams that have a new number, which ascend.
    pub fn select(self, numbers: &[Option<u32>]) -> Self {
        let streams = self.streams.into_iter().zip(numbers).filter_map(|(info, number)| Some(info.renumbered((*number)?))).collect();
        Self { streams, processes: renumber(self.processes, numbers), patterns: self.patterns }
    }
}

impl StreamInfo {
    fn renumbered(mut self, stream: u32) -> Self {
        if let Some(last) = self.last.as_mut().filter(|l| l.at.stream != stream) {
            Arc::make_mut(last).at.stream = stream;
        }
        self
    }
}

/// The union, and what is to be said of it. A stream that several digests tell of is taken once.
pub fn union(parts: Vec<Part>) -> (Digest, Vec<String>) {
    let mut notes = Vec::new();
    let order = order(&parts, &mut notes);
    let mut numbers: Vec<Vec<Option<u32>>> = parts.iter().map(|p| vec![None; p.streams().len()]).collect();
    let mut digest = Digest::default();
    for (number, (part, stream)) in order.into_iter().enumerate() {
        numbers[part][stream] = Some(number as u32);
        digest.streams.push(parts[part].streams()[stream].clone().renumbered(number as u32));
    }
    for (part, numbers) in parts.into_iter().zip(&numbers) {
        digest.processes.extend(part.processes(numbers));
    }
    digest.processes.sort_by_key(|p| p.stream);
    (digest, notes)
}

/// All streams that are kept, in order.
fn order(parts: &[Part], notes: &mut Vec<String>) -> Vec<Place> {
    let mut named: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
    for (p, part) in parts.iter().enumerate() {
        for (s, info) in part.streams().iter().enumerate() {
            named.entry(file_name(&info.path)).or_default().push((p, s));
        }
    }
    let mut marks: Vec<Option<Vec<u64>>> = vec![None; parts.len()];
    let mut keyed: Vec<(Key, Place)> = Vec::new();
    for places in named.into_values() {
        let several = places.len() > 1;
        let mut seen: Vec<(u64, Place)> = Vec::new();
        for (p, s) in places {
            let info = &parts[p].streams()[s];
            // Most names occur once, and what lies behind them need not be looked at.
            let mark = if several { marks[p].get_or_insert_with(|| part_marks(&parts[p]))[s] } else { 0 };
            if let Some((_, twin)) = seen.iter().find(|(m, (tp, ts))| *m == mark && same(&parts[*tp].streams()[*ts], info)) {
                notes.push(twice(&parts[twin.0].streams()[twin.1], info));
                continue;
            }
            seen.push((mark, (p, s)));
            let path = &info.path;
            keyed.push((Key { file: path != "-", name: natural_key(path), path: path.clone(), from: natural_key(&info.from), mark }, (p, s)));
        }
    }
    keyed.sort();
    keyed.into_iter().map(|(_, place)| place).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\', '!']).next().unwrap_or(path)
}

/// Two streams of one name hold the same log. Empty ones tell nothing of each other.
fn same(a: &StreamInfo, b: &StreamInfo) -> bool {
    let facts = |s: &StreamInfo| (s.bytes, s.lines, s.nccl_lines, s.events, s.last_time);
    let last = |s: &StreamInfo| s.last.as_ref().map(|l| (l.at.line, l.at.offset, l.text.clone()));
    a.events > 0 && facts(a) == facts(b) && last(a) == last(b)
}

fn twice(kept: &StreamInfo, dropped: &StreamInfo) -> String {
    let place = |s: &StreamInfo| if s.from.is_empty() { "a file given here".to_owned() } else { s.from.clone() };
    if kept.from == dropped.from {
        return format!("{} is told of twice by {}; it was counted once.", kept.path, place(kept));
    }
    format!("{} and {} tell of the same {}; it was counted once.", place(kept), place(dropped), kept.path)
}

/// What each stream of a part holds, as a number.
fn part_marks(part: &Part) -> Vec<u64> {
    match part {
        Part::Packed(packed) => packed.marks(),
        Part::Folded(digest) => {
            let mut marks = vec![0; digest.streams.len()];
            for process in &digest.processes {
                if let Some(known) = marks.get_mut(process.stream as usize) {
                    *known = mark(*known, process);
                }
            }
            marks
        }
    }
}

/// Names the streams that share a path by the digest that tells of them.
pub fn name_apart(streams: &mut [StreamInfo]) {
    let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, info) in streams.iter().enumerate() {
        named.entry(info.path.clone()).or_default().push(i);
    }
    for list in named.into_values().filter(|l| l.len() > 1) {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for i in list {
            let info = &mut streams[i];
            let n = times.entry(info.from.clone()).or_default();
            *n += 1;
            if !info.from.is_empty() {
                let again = if *n > 1 { format!("#{n}") } else { String::new() };
                info.path = format!("{}{again}!{}", info.from, info.path);
            }
        }
    }
}
