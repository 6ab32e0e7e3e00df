//! The ledger: facts of a process as (kind, device, key) → count, first, last, samples, with one generic merge.

use super::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples kept beside first and last.
pub const MAX_SAMPLES: usize = 4;

/// Most entries of one process.
const MAX_ENTRIES: usize = 300;

/// Most entries of one kind.
const MAX_PER_KIND: usize = 48;

/// Key of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    kind: String,
    dev: Option<u16>,
    values: String,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Kind of the shape.
    pub kind: String,
    /// CUDA device of the header.
    pub dev: Option<u16>,
    /// Values of the key fields, joined.
    pub key: String,
    /// How often it was seen.
    pub count: u64,
    /// First record.
    pub first: Sample,
    /// Last record.
    pub last: Sample,
    /// Up to [`MAX_SAMPLES`] records in order, the first included.
    pub samples: Vec<Sample>,
}

/// All facts of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct Ledger {
    entries: BTreeMap<Key, Entry>,
}

impl From<Vec<Entry>> for Ledger {
    fn from(list: Vec<Entry>) -> Self {
        let mut ledger = Self::default();
        for entry in list.into_iter().take(MAX_ENTRIES) {
            ledger.entries.insert(Key { kind: entry.kind.clone(), dev: entry.dev, values: entry.key.clone() }, entry);
        }
        ledger
    }
}

impl From<Ledger> for Vec<Entry> {
    fn from(ledger: Ledger) -> Self {
        ledger.entries.into_values().collect()
    }
}

impl Entry {
    /// Keeps a sample if it is among the first by place. Records of two texts may come in turns, each text at once.
    fn keep(&mut self, sample: &Sample) {
        let at = self.samples.partition_point(|s| s.at <= sample.at);
        if at < MAX_SAMPLES {
            self.samples.truncate(MAX_SAMPLES - usize::from(self.samples.len() == MAX_SAMPLES));
            self.samples.insert(at, sample.clone());
        }
    }

    /// Takes a later record as the last one.
    fn end(&mut self, sample: Sample) {
        if sample.at >= self.last.at {
            self.last = sample;
        }
    }
}

impl Ledger {
    /// Adds one fact; returns false if a bound dropped it.
    pub fn add(&mut self, kind: &str, dev: Option<u16>, key: String, sample: impl FnOnce() -> Sample) -> bool {
        let key = Key { kind: kind.to_owned(), dev, values: key };
        if let Some(entry) = self.entries.get_mut(&key) {
            let sample = sample();
            entry.count += 1;
            entry.keep(&sample);
            entry.end(sample);
            return true;
        }
        if self.entries.len() >= MAX_ENTRIES || self.of(kind).count() >= MAX_PER_KIND {
            return false;
        }
        let sample = sample();
        let entry = Entry { kind: kind.to_owned(), dev, key: key.values.clone(), count: 1, first: sample.clone(), last: sample.clone(), samples: vec![sample] };
        self.entries.insert(key, entry);
        true
    }

    /// Adds `count` more records of a fact that was just added: the first of them in order, and the last. Returns false
    /// if a bound had dropped it.
    pub fn again(&mut self, kind: &str, dev: Option<u16>, key: String, count: u64, first: impl Iterator<Item = Sample>, last: Sample) -> bool {
        let Some(entry) = self.entries.get_mut(&Key { kind: kind.to_owned(), dev, values: key }) else { return false };
        entry.count += count;
        first.for_each(|sample| entry.keep(&sample));
        entry.end(last);
        true
    }

    /// Joins another ledger of the same process; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        for (key, theirs) in &other.entries {
            match self.entries.get_mut(key) {
                None => {
                    self.entries.insert(key.clone(), theirs.clone());
                }
                Some(ours) => {
                    ours.count += theirs.count;
                    if theirs.first.at < ours.first.at {
                        ours.first = theirs.first.clone();
                    }
                    if theirs.last.at > ours.last.at {
                        ours.last = theirs.last.clone();
                    }
                    ours.samples.extend(theirs.samples.iter().cloned());
                    ours.samples.sort_by_key(|s| s.at);
                    ours.samples.dedup_by_key(|s| s.at);
                    ours.samples.truncate(MAX_SAMPLES);
                }
            }
        }
    }

    /// Entries of one kind.
    pub fn of<'a, 'k>(&'a self, kind: &'k str) -> impl Iterator<Item = &'a Entry> + use<'a, 'k> {
        let from = Key { kind: kind.to_owned(), dev: None, values: String::new() };
        self.entries.range(from..).map(|(_, e)| e).take_while(move |e| e.kind == kind)
    }

    /// All entries, ordered by kind, device and key.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}
