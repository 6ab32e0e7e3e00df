//! The ledger: facts of a process as (kind, device, key) → count, first, last, samples, with one generic merge.

use super::{Mark, Sample};
use std::borrow::Borrow;
use std::sync::Arc;

/// Samples kept beside first and last.
pub const MAX_SAMPLES: usize = 4;

/// Most entries of one process.
pub(super) const MAX_ENTRIES: usize = 300;

/// Most entries of one kind.
const MAX_PER_KIND: usize = 48;

/// One fact. Records are shared: most facts are seen once, and their first record is their last.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub first: Arc<Sample>,
    /// Last record.
    pub last: Arc<Sample>,
    /// Up to [`MAX_SAMPLES`] records in order, the first included.
    pub samples: Vec<Arc<Sample>>,
}

/// A record that may be kept as evidence.
pub trait Evidence {
    /// Where it stands.
    fn mark(&self) -> Mark;
    /// Its text as it stood.
    fn text(&self) -> &[u8];
    /// It as a sample.
    fn sample(&self) -> Arc<Sample>;
}

impl Evidence for Arc<Sample> {
    fn mark(&self) -> Mark {
        self.at
    }

    fn text(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn sample(&self) -> Arc<Sample> {
        Self::clone(self)
    }
}

/// All facts of a process, ordered by kind, device and key. A sorted list: there are thousands of ledgers of few
/// entries, and a tree's nodes would be half empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Entry {
    fn order(&self) -> (&str, Option<u16>, &str) {
        (&self.kind, self.dev, &self.key)
    }

    /// Keeps a sample if it is among the first by place. Records of two texts may come in turns, each text at once.
    fn keep(&mut self, sample: &Arc<Sample>) {
        let at = self.samples.partition_point(|s| s.at <= sample.at);
        if at < MAX_SAMPLES {
            self.samples.truncate(MAX_SAMPLES - usize::from(self.samples.len() == MAX_SAMPLES));
            self.samples.insert(at, Arc::clone(sample));
        }
    }

    /// Forgets the records between the first and the last; tells how many.
    pub(super) fn forget_between(&mut self) -> u64 {
        let before = self.samples.len();
        self.samples.truncate(1);
        (before - self.samples.len()) as u64
    }

    /// Whether a record at `mark` would be kept as a sample.
    fn wants(&self, mark: Mark) -> bool {
        self.samples.len() < MAX_SAMPLES || self.samples.last().is_some_and(|s| mark < s.at)
    }

    /// Takes a later record as the last one.
    fn end(&mut self, record: &impl Evidence) {
        let mark = record.mark();
        if mark < self.last.at {
            return;
        }
        if self.last.text.as_bytes() == record.text() {
            // An equal text tells the same; only its place is new.
            Arc::make_mut(&mut self.last).at = mark;
        } else {
            self.last = record.sample();
        }
    }
}

impl Ledger {
    fn find(&self, kind: &str, dev: Option<u16>, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|e| e.order().cmp(&(kind, dev, key)))
    }

    /// Adds one fact; returns false if a bound dropped it.
    pub fn add(&mut self, kind: &str, dev: Option<u16>, key: &str, record: &impl Evidence) -> bool {
        self.add_all(kind, dev, key, 1, std::iter::once(record), Some(record))
    }

    /// Adds `count` records of one fact: the first of them in order, and the last unless a later one follows at once.
    /// Samples that would not be kept are not made. Returns false if a bound dropped it.
    pub fn add_all<E: Evidence>(&mut self, kind: &str, dev: Option<u16>, key: &str, count: u64, first: impl Iterator<Item = impl Borrow<E>>, last: Option<&E>) -> bool {
        let mut first = first.peekable();
        let at = match self.find(kind, dev, key) {
            Ok(at) => at,
            Err(_) if self.entries.len() >= MAX_ENTRIES || self.of(kind).count() >= MAX_PER_KIND => return false,
            Err(at) => {
                let Some(sample) = first.peek().map(|record| record.borrow().sample()) else { return false };
                let entry = Entry { kind: kind.to_owned(), dev, key: key.to_owned(), count: 0, first: Arc::clone(&sample), last: sample, samples: Vec::new() };
                self.entries.insert(at, entry);
                at
            }
        };
        let entry = &mut self.entries[at];
        entry.count += count;
        for record in first {
            let record = record.borrow();
            if !entry.wants(record.mark()) {
                break;
            }
            entry.keep(&record.sample());
        }
        if let Some(last) = last {
            entry.end(last);
        }
        true
    }

    /// Takes a whole entry in, as a digest tells of it.
    pub(super) fn put(&mut self, entry: Entry) {
        match self.entries.binary_search_by(|e| e.order().cmp(&entry.order())) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    /// Joins another ledger of the same process; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        for theirs in &other.entries {
            match self.entries.binary_search_by(|e| e.order().cmp(&theirs.order())) {
                Err(at) => self.entries.insert(at, theirs.clone()),
                Ok(at) => {
                    let ours = &mut self.entries[at];
                    ours.count += theirs.count;
                    if theirs.first.at < ours.first.at {
                        ours.first = Arc::clone(&theirs.first);
                    }
                    if theirs.last.at > ours.last.at {
                        ours.last = Arc::clone(&theirs.last);
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
        let from = self.entries.partition_point(|e| e.kind.as_str() < kind);
        self.entries[from..].iter().take_while(move |e| e.kind == kind)
    }

    /// Lets `change` give the facts other keys. Facts that get one key are one from then on; the first stays.
    pub fn rekey(&mut self, change: &mut dyn FnMut(&str, &mut String)) {
        for entry in &mut self.entries {
            change(&entry.kind, &mut entry.key);
        }
        self.entries.sort_by(|a, b| a.order().cmp(&b.order()));
        self.entries.dedup_by(|b, a| a.order() == b.order());
    }

    /// Entries whose kind starts with `prefix`.
    pub fn under<'a, 'k>(&'a self, prefix: &'k str) -> impl Iterator<Item = &'a Entry> + use<'a, 'k> {
        let from = self.entries.partition_point(|e| e.kind.as_str() < prefix);
        self.entries[from..].iter().take_while(move |e| e.kind.starts_with(prefix))
    }

    /// All entries, ordered by kind, device and key.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// All entries, to be changed in what does not order them.
    pub(super) fn entries_mut(&mut self) -> &mut Vec<Entry> {
        &mut self.entries
    }
}
