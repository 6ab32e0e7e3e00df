//! The query layer: what rules may ask of the job. Everything answers for the last attempt only.

use super::finding::Evidence;
use crate::digest::{CommLog, Entry, Mark, Sample, SettingKey};
use crate::event::{Stage, catalog};
use crate::job::{Comm, Job, Member, Proc};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Asks the job.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The job.
    pub job: &'a Job,
    /// Remembers what was asked for.
    record: Option<&'a Asked>,
}

/// What a rule asked for, in order: `--why-not` tells it.
#[derive(Debug, Default)]
pub struct Asked {
    questions: RefCell<Vec<Question>>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Records of a kind.
    Kind(String),
    /// Records of all kinds with a prefix.
    Under(String),
    /// A variable.
    Setting(String),
}

impl Asked {
    fn note(&self, question: Question) {
        let mut list = self.questions.borrow_mut();
        if !list.contains(&question) {
            list.push(question);
        }
    }

    /// The questions, each once.
    pub fn into_questions(self) -> Vec<Question> {
        self.questions.into_inner()
    }
}

/// One ledger entry of one process.
#[derive(Clone, Copy)]
pub struct Hit<'a> {
    /// The job.
    pub job: &'a Job,
    /// Index into `Job::procs`.
    pub proc: usize,
    /// The fact.
    pub entry: &'a Entry,
}

/// One setting of one process.
#[derive(Clone, Copy)]
pub struct SettingHit<'a> {
    /// The job.
    pub job: &'a Job,
    /// Index into `Job::procs`.
    pub proc: usize,
    /// Name.
    pub name: &'a str,
    /// Value.
    pub value: &'a str,
    /// The library printed that it uses it.
    pub in_force: bool,
    /// Its record.
    pub sample: &'a Sample,
}

impl<'a> Hit<'a> {
    /// The process.
    pub fn process(&self) -> &'a Proc {
        &self.job.procs[self.proc]
    }

    /// The rank that printed it, if known.
    pub fn rank(&self) -> Option<u32> {
        self.process().rank_on(self.entry.dev)
    }

    /// The host that printed it; empty if unknown.
    pub fn host(&self) -> &'a str {
        &self.process().host
    }

    /// A field of the first record.
    pub fn get(&self, field: &str) -> Option<&'a str> {
        self.entry.first.get(field).filter(|v| !v.is_empty())
    }

    /// A field of the first record as a number.
    pub fn num(&self, field: &str) -> Option<i64> {
        self.entry.first.num(field)
    }

    /// The signal that ended a process, of a record that tells its end. A shell adds 128 to it, Python's launchers print
    /// it as negative.
    pub fn signal(&self) -> Option<i64> {
        self.num("signal").or_else(|| self.num("code").and_then(|c| if c < 0 { Some(-c) } else { c.checked_sub(128) }))
    }

    /// How often.
    pub fn count(&self) -> u64 {
        self.entry.count
    }

    /// Place of the first record.
    pub fn at(&self) -> Mark {
        self.entry.first.at
    }

    /// The first record as evidence.
    pub fn evidence(&self) -> Evidence {
        evidence(self.job, self.rank(), &self.entry.first)
    }

    /// The first record's text.
    pub fn text(&self) -> &'a str {
        &self.entry.first.text
    }
}

impl<'a> SettingHit<'a> {
    /// The rank that has it, if known.
    pub fn rank(&self) -> Option<u32> {
        self.job.procs[self.proc].rank
    }

    /// The host that has it; empty if unknown.
    pub fn host(&self) -> &'a str {
        &self.job.procs[self.proc].host
    }

    /// Its record as evidence.
    pub fn evidence(&self) -> Evidence {
        evidence(self.job, self.rank(), self.sample)
    }
}

/// A sample as evidence.
pub fn evidence(job: &Job, rank: Option<u32>, sample: &Sample) -> Evidence {
    Evidence { file: job.path(sample.at.stream).to_owned(), line: sample.at.line, offset: sample.at.offset, rank, text: sample.text.clone() }
}

impl<'a> Ask<'a> {
    /// Asks a job.
    pub fn new(job: &'a Job) -> Self {
        Self { job, record: None }
    }

    /// Asks a job and remembers what for.
    pub fn recorded(job: &'a Job, asked: &'a Asked) -> Self {
        Self { job, record: Some(asked) }
    }

    fn note(self, question: impl FnOnce() -> Question) {
        if let Some(asked) = self.record {
            asked.note(question());
        }
    }

    /// Processes of the last attempt with their index.
    pub fn procs(self) -> impl Iterator<Item = (usize, &'a Proc)> {
        let last = self.job.last_run();
        self.job.procs.iter().enumerate().filter(move |(_, p)| p.run == last)
    }

    /// All entries of a kind, in order of their first record.
    pub fn hits(self, kind: &str) -> Vec<Hit<'a>> {
        self.any_of(&[kind])
    }

    /// All entries of several kinds, in order of their first record.
    pub fn any_of(self, kinds: &[&str]) -> Vec<Hit<'a>> {
        debug_assert!(kinds.iter().all(|k| is_kind(k)), "unknown kind among {kinds:?}");
        for kind in kinds {
            self.note(|| Question::Kind((*kind).to_owned()));
        }
        let distinct: BTreeSet<&str> = kinds.iter().copied().collect();
        let of = |kind: &'_ str| {
            self.job.tellers(kind).iter().flat_map(move |&proc| self.job.procs[proc].log.ledger.of(kind).map(move |entry| Hit { job: self.job, proc, entry })).collect::<Vec<_>>()
        };
        let mut hits: Vec<Hit<'a>> = distinct.into_iter().flat_map(of).collect();
        // As if process by process, so that records of the same place keep their order.
        hits.sort_by_key(|h| (h.at(), h.proc));
        hits
    }

    /// All entries whose kind starts with `prefix`, in order of their first record.
    pub fn under(self, prefix: &str) -> Vec<Hit<'a>> {
        self.note(|| Question::Under(prefix.to_owned()));
        let mut hits: Vec<Hit<'a>> = self.procs().flat_map(|(i, p)| p.log.ledger.under(prefix).map(move |entry| Hit { job: self.job, proc: i, entry })).collect();
        hits.sort_by_key(Hit::at);
        hits
    }

    /// Whether any process has an entry of the kind.
    pub fn has(self, kind: &str) -> bool {
        debug_assert!(is_kind(kind), "unknown kind {kind}");
        self.note(|| Question::Kind(kind.to_owned()));
        !self.job.tellers(kind).is_empty()
    }

    /// All values of a variable, in order of their first record.
    pub fn settings(self, name: &str) -> Vec<SettingHit<'a>> {
        self.note(|| Question::Setting(name.to_owned()));
        // Settings are ordered by name: of thousands of processes only the few wanted ones are looked at.
        let from = SettingKey { name: name.to_owned(), value: String::new(), in_force: false };
        let own = |p: &'a Proc| p.log.settings.range(&from..).take_while(|(k, _)| k.name == name);
        let mut hits: Vec<SettingHit<'a>> = self
            .procs()
            .flat_map(|(i, p)| own(p).map(move |(k, s)| SettingHit { job: self.job, proc: i, name: &k.name, value: &k.value, in_force: k.in_force, sample: s }))
            .collect();
        hits.sort_by_key(|h| h.sample.at);
        hits
    }

    /// The first setting of `name` whose value satisfies `test`.
    pub fn setting_where(self, name: &str, test: impl Fn(&str) -> bool) -> Option<SettingHit<'a>> {
        self.settings(name).into_iter().find(|s| test(s.value))
    }

    /// The first setting of `name` that switches something on (`1`, any number but 0).
    pub fn switched_on(self, name: &str) -> Option<SettingHit<'a>> {
        self.setting_where(name, |v| v.parse::<i64>().is_ok_and(|n| n != 0))
    }

    /// Communicators of the last attempt.
    pub fn comms(self) -> impl Iterator<Item = &'a Comm> {
        let last = self.job.last_run();
        self.job.comms.iter().filter(move |c| c.run == last)
    }

    /// Communicators of the last attempt whose data crosses nodes.
    pub fn spanning(self) -> Vec<&'a Comm> {
        self.comms().filter(|c| c.spans_nodes).collect()
    }

    /// The views of a communicator.
    pub fn views(self, comm: &'a Comm) -> impl Iterator<Item = (&'a Member, &'a CommLog)> {
        comm.members.iter().map(move |m| (m, self.job.comm_log(m)))
    }

    /// The networks that a communicator's ranks chose, with the ranks that chose them.
    pub fn nets_of(self, comm: &'a Comm) -> BTreeMap<&'a str, Vec<u32>> {
        let mut nets: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (m, log) in self.views(comm) {
            let printed = log.net.as_ref().map(|(n, _)| n.as_str());
            let by_channel = log.channels.iter().find(|c| !c.net.is_empty()).map(|c| c.net.as_str());
            if let Some(net) = printed.or(by_channel) {
                nets.entry(net).or_default().extend(m.rank);
            }
        }
        nets
    }

    /// Distinct hosts of the last attempt, by name.
    pub fn hosts(self) -> Vec<&'a str> {
        self.job.hosts.iter().map(|h| h.name.as_str()).collect()
    }

    /// More than one node takes part, as far as the log tells.
    pub fn multi_node(self) -> bool {
        self.comms().any(|c| c.spans_nodes) || self.job.hosts.len() > 1
    }

    /// World ranks whose furthest stage satisfies `test`.
    pub fn ranks_at(self, test: impl Fn(Stage) -> bool) -> Vec<u32> {
        self.job.ranks.iter().filter(|r| test(r.stage)).map(|r| r.rank).collect()
    }

    /// Every rank of the world communicator has a log and reached Init COMPLETE.
    pub fn all_complete(self) -> bool {
        let Some(world) = self.job.world() else { return false };
        let complete = self.views(world).filter(|(_, l)| l.complete.is_some()).count();
        world.nranks.is_some_and(|n| complete >= n as usize)
    }

    /// Distinct library versions as numbers, ascending.
    pub fn versions(self) -> BTreeSet<(u32, u32, u32)> {
        self.job.versions.iter().filter_map(|v| number(v)).collect()
    }

    /// The oldest version in the log.
    pub fn version(self) -> Option<(u32, u32, u32)> {
        self.versions().into_iter().next()
    }

    /// More than one node takes part, or the log does not show the whole job.
    pub fn multi_node_or_unknown(self) -> bool {
        self.multi_node() || !self.job.absent_ranks().is_empty()
    }
}

/// `2.27.3+cuda12.9` → (2, 27, 3).
pub fn number(version: &str) -> Option<(u32, u32, u32)> {
    let core = version.split(['+', '-', ' ']).next()?;
    let mut parts = core.split('.').map(|p| p.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

fn is_kind(kind: &str) -> bool {
    matches!(kind, "warn.unknown" | "init.version") || catalog().knows(kind)
}

/// `0-3,7` for a list of ranks; at most twelve stretches.
pub fn ranges(ranks: &[u32]) -> String {
    const MOST: usize = 12;
    let sorted: BTreeSet<u32> = ranks.iter().copied().collect();
    let stretches = stretches(sorted);
    let more = if stretches.len() > MOST { ",…" } else { "" };
    format!("{}{more}", stretches[..stretches.len().min(MOST)].join(","))
}

/// Ascending numbers as stretches: `0-3`, `7`, `9,10`.
pub fn stretches(ascending: impl IntoIterator<Item = u32>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut iter = ascending.into_iter().peekable();
    while let Some(first) = iter.next() {
        let mut last = first;
        while let Some(next) = iter.next_if(|n| *n == last || last.checked_add(1) == Some(*n)) {
            last = next;
        }
        parts.push(match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
    }
    parts
}

/// `rank 3`, `ranks 0-3,7`, or `a process` where no rank is known.
pub fn ranks_text(ranks: &[u32]) -> String {
    match ranks {
        [] => "a process".to_owned(),
        [one] => format!("rank {one}"),
        many => format!("ranks {}", ranges(many)),
    }
}

/// The text with its first letter in upper case.
pub fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(letter) = text.get_mut(0..1) {
        letter.make_ascii_uppercase();
    }
    text
}

/// The ranks of hits, ascending, each once.
pub fn ranks_of(hits: &[Hit<'_>]) -> Vec<u32> {
    hits.iter().filter_map(Hit::rank).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The hosts of hits, each once, in order of appearance.
pub fn hosts_of(hits: &[Hit<'_>]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for h in hits.iter().map(Hit::host).filter(|h| !h.is_empty()) {
        if !hosts.iter().any(|k| k == h) {
            hosts.push(h.to_owned());
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fold_into_ranges() {
        assert_eq!(ranges(&[3, 0, 1, 2, 7, 9, 10]), "0-3,7,9,10");
        assert_eq!(ranks_text(&[5]), "rank 5");
        assert_eq!(number("2.27.3+cuda12.9"), Some((2, 27, 3)));
        assert_eq!(number("2.22.3-HEAD:271856d"), Some((2, 22, 3)));
        assert_eq!(number("x"), None);
    }
}
