//! All text that a digest or an analysis took from the logs, for who wants to change it.

use crate::digest::{Digest, HostFacts, Process, Sample, SettingKey, StreamInfo};
use crate::job::Job;
use crate::rules::tree::Decision;
use crate::rules::{Analysis, Evidence, Finding, UnknownWarning};
use ahash::AHashMap;
use serde_json::Value;
use std::sync::Arc;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Text of a log.
    Text,
    /// Words about the logs.
    Words,
    /// Path of an input.
    Path,
    /// Name of a host, perhaps with an address in parentheses behind it.
    Host,
    /// A word of a wrapper that stood in the place of a host.
    MaybeHost,
    /// Value of the field with this name.
    Field(&'a str),
    /// Value of the variable with this name.
    Setting(&'a str),
    /// A message with its numbers replaced.
    Template,
}

/// Takes one piece of text and may change it.
pub type Visit<'v> = dyn FnMut(&mut String, Kind<'_>) + 'v;

/// A walk: records are shared, and those that are must stay so.
pub struct Walk<'v> {
    visit: &'v mut Visit<'v>,
    /// Records by their address, with what they became; the old one is held as long as its address stands for it.
    known: AHashMap<*const Sample, (Arc<Sample>, Arc<Sample>)>,
}

impl<'v> Walk<'v> {
    /// A walk that shows everything to `visit`.
    pub fn new(visit: &'v mut Visit<'v>) -> Self {
        Self { visit, known: AHashMap::new() }
    }

    fn text(&mut self, text: &mut String, kind: Kind<'_>) {
        (self.visit)(text, kind);
    }

    fn sample(&mut self, sample: &mut Arc<Sample>) {
        if let Some((_, new)) = self.known.get(&Arc::as_ptr(sample)) {
            *sample = Arc::clone(new);
            return;
        }
        let mut changed = Sample::clone(sample);
        self.own_sample(&mut changed);
        let new = Arc::new(changed);
        self.known.insert(Arc::as_ptr(sample), (Arc::clone(sample), Arc::clone(&new)));
        *sample = new;
    }

    fn own_sample(&mut self, sample: &mut Sample) {
        self.text(&mut sample.text, Kind::Text);
        for (name, value) in &mut sample.fields {
            (self.visit)(value, Kind::Field(name));
        }
    }

    fn stream(&mut self, s: &mut StreamInfo) {
        self.text(&mut s.path, Kind::Path);
        self.text(&mut s.from, Kind::Path);
        if let Some(problem) = &mut s.problem {
            self.text(problem, Kind::Words);
        }
        if let Some(last) = &mut s.last {
            self.sample(last);
        }
        s.facts.iter_mut().for_each(|f| self.facts(f));
    }

    /// Facts of a host are many small fields of few kinds; by their JSON none is forgotten.
    fn facts(&mut self, facts: &mut HostFacts) {
        let Ok(mut value) = serde_json::to_value(&*facts) else { return };
        self.value(&mut value, "");
        // What does not fit any more must not be shown as it was.
        *facts = serde_json::from_value(value).unwrap_or_default();
    }

    fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) => self.text(text, Kind::Field(key)),
            Value::Array(list) => list.iter_mut().for_each(|v| self.value(v, key)),
            Value::Object(map) => map.iter_mut().for_each(|(key, v)| self.value(v, key)),
            _ => {}
        }
    }

    fn process(&mut self, p: &mut Process) {
        self.text(&mut p.label, Kind::Text);
        self.text(&mut p.host, Kind::Host);
        let hosts = std::mem::take(&mut p.wrap_hosts);
        p.wrap_hosts = hosts
            .into_iter()
            .map(|mut host| {
                self.text(&mut host, Kind::MaybeHost);
                host
            })
            .collect();
        let settings = std::mem::take(&mut p.settings);
        p.settings = settings
            .into_iter()
            .map(|(SettingKey { name, mut value, in_force }, record)| {
                self.text(&mut value, Kind::Setting(&name));
                (SettingKey { name, value, in_force }, record)
            })
            .collect();
        p.ledger.rekey(&mut |kind, key| self.text(key, if kind == "warn.unknown" { Kind::Template } else { Kind::Text }));
        for comm in &mut p.comms {
            comm.net.iter_mut().for_each(|(net, _)| self.text(net, Kind::Text));
            comm.channels.iter_mut().for_each(|c| self.text(&mut c.via, Kind::Text));
        }
        p.each_sample_mut(&mut |sample| self.sample(sample));
    }

    /// Visits a digest.
    pub fn digest(&mut self, digest: &mut Digest) {
        digest.streams.iter_mut().for_each(|s| self.stream(s));
        digest.processes.iter_mut().for_each(|p| self.process(p));
    }

    fn job(&mut self, job: &mut Job) {
        job.streams.iter_mut().for_each(|s| self.stream(s));
        for p in &mut job.procs {
            self.text(&mut p.host, Kind::Host);
            self.process(&mut p.log);
        }
        job.hosts.iter_mut().for_each(|h| self.text(&mut h.name, Kind::Host));
        for row in &mut job.ranks {
            row.host.iter_mut().for_each(|h| self.text(h, Kind::Host));
            self.own_sample(&mut row.last);
        }
        job.runs.iter_mut().for_each(|r| self.own_sample(&mut r.first));
        job.divergences.iter_mut().flat_map(|d| &mut d.sides).filter_map(|s| s.text.as_mut()).for_each(|text| self.text(text, Kind::Text));
        let printed = job.transports.iter_mut().map(|t| &mut t.via).chain(&mut job.nets).chain(&mut job.versions);
        printed.for_each(|text| self.text(text, Kind::Text));
        for node in &mut job.facts.nodes {
            self.text(&mut node.name, Kind::Host);
            self.facts(&mut node.facts);
            node.files.iter_mut().for_each(|f| self.text(f, Kind::Path));
        }
    }

    fn evidence(&mut self, e: &mut Evidence) {
        self.text(&mut e.file, Kind::Path);
        self.text(&mut e.text, Kind::Text);
    }

    fn decisions(&mut self, list: &mut [Decision]) {
        list.iter_mut().filter_map(|d| d.evidence.as_mut()).for_each(|e| self.evidence(e));
    }

    fn finding(&mut self, f: &mut Finding) {
        let fixes = f.fixes.iter_mut().flat_map(|x| [&mut x.title, &mut x.when, &mut x.needs, &mut x.cost, &mut x.undo].into_iter().chain(&mut x.commands));
        let words = [&mut f.title, &mut f.why].into_iter().chain(fixes).chain(&mut f.avoid).chain(&mut f.verify);
        words.for_each(|text| self.text(text, Kind::Words));
        f.hosts.iter_mut().for_each(|h| self.text(h, Kind::Host));
        f.evidence.iter_mut().for_each(|e| self.evidence(e));
        self.decisions(&mut f.decisions);
    }

    fn unknown(&mut self, u: &mut UnknownWarning) {
        self.text(&mut u.template, Kind::Template);
        u.hosts.iter_mut().for_each(|h| self.text(h, Kind::Host));
        self.evidence(&mut u.evidence);
    }

    /// Visits an analysis, its job included.
    pub fn analysis(&mut self, a: &mut Analysis) {
        self.job(&mut a.job);
        a.findings.iter_mut().for_each(|f| self.finding(f));
        a.notes.iter_mut().chain(&mut a.undecided).for_each(|text| self.text(text, Kind::Words));
        a.unknown.iter_mut().for_each(|u| self.unknown(u));
        for silenced in &mut a.silenced {
            self.text(&mut silenced.reason, Kind::Words);
            silenced.finding.iter_mut().for_each(|f| self.finding(f));
            silenced.warning.iter_mut().for_each(|u| self.unknown(u));
        }
        self.decisions(&mut a.walk.decisions);
        self.text(&mut a.walk.why, Kind::Words);
        for reason in a.why_not.iter_mut().flat_map(|w| &mut w.reasons) {
            self.text(&mut reason.text, Kind::Words);
            reason.evidence.iter_mut().for_each(|e| self.evidence(e));
        }
    }
}
