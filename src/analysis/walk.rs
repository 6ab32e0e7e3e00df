//! All text that a digest or an analysis took from the logs, for who wants to change it.

use crate::digest::{CommLog, Digest, Entry, Process, Sample, SettingKey, StreamInfo};
use crate::job::Job;
use crate::rules::tree::Decision;
use crate::rules::{Analysis, Evidence, Finding, UnknownWarning};

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

fn sample(s: &mut Sample, visit: &mut Visit<'_>) {
    visit(&mut s.text, Kind::Text);
    for (name, value) in &mut s.fields {
        visit(value, Kind::Field(name));
    }
}

fn stream(s: &mut StreamInfo, visit: &mut Visit<'_>) {
    visit(&mut s.path, Kind::Path);
    if let Some(problem) = &mut s.problem {
        visit(problem, Kind::Words);
    }
    if let Some(last) = &mut s.last {
        sample(last, visit);
    }
}

fn entry(e: &mut Entry, visit: &mut Visit<'_>) {
    visit(&mut e.key, if e.kind == "warn.unknown" { Kind::Template } else { Kind::Text });
    sample(&mut e.first, visit);
    sample(&mut e.last, visit);
    e.samples.iter_mut().for_each(|s| sample(s, visit));
}

fn comm(c: &mut CommLog, visit: &mut Visit<'_>) {
    let end = c.end.as_mut().map(|(_, s)| s);
    for s in [&mut c.first, &mut c.start, &mut c.complete, &mut c.last].into_iter().flatten().chain(end) {
        sample(s, visit);
    }
    if let Some((net, s)) = &mut c.net {
        visit(net, Kind::Text);
        sample(s, visit);
    }
    for channel in &mut c.channels {
        visit(&mut channel.via, Kind::Text);
        sample(&mut channel.first, visit);
    }
}

fn process(p: &mut Process, visit: &mut Visit<'_>) {
    visit(&mut p.label, Kind::Text);
    visit(&mut p.host, Kind::Host);
    p.wrap_hosts = std::mem::take(&mut p.wrap_hosts)
        .into_iter()
        .map(|mut host| {
            visit(&mut host, Kind::MaybeHost);
            host
        })
        .collect();
    sample(&mut p.first, visit);
    sample(&mut p.last, visit);
    p.settings = std::mem::take(&mut p.settings)
        .into_iter()
        .map(|(SettingKey { name, mut value, in_force }, mut record)| {
            visit(&mut value, Kind::Setting(&name));
            sample(&mut record, visit);
            (SettingKey { name, value, in_force }, record)
        })
        .collect();
    let mut entries: Vec<Entry> = std::mem::take(&mut p.ledger).into();
    entries.iter_mut().for_each(|e| entry(e, visit));
    p.ledger = entries.into();
    p.comms.iter_mut().for_each(|c| comm(c, visit));
}

/// Visits a digest.
pub fn digest(digest: &mut Digest, visit: &mut Visit<'_>) {
    digest.streams.iter_mut().for_each(|s| stream(s, visit));
    digest.processes.iter_mut().for_each(|p| process(p, visit));
}

fn job(job: &mut Job, visit: &mut Visit<'_>) {
    job.streams.iter_mut().for_each(|s| stream(s, visit));
    for p in &mut job.procs {
        visit(&mut p.host, Kind::Host);
        process(&mut p.log, visit);
    }
    job.hosts.iter_mut().for_each(|h| visit(&mut h.name, Kind::Host));
    for row in &mut job.ranks {
        if let Some(host) = &mut row.host {
            visit(host, Kind::Host);
        }
        sample(&mut row.last, visit);
    }
    for run in &mut job.runs {
        sample(&mut run.first, visit);
    }
    for text in job.divergences.iter_mut().flat_map(|d| &mut d.sides).filter_map(|s| s.text.as_mut()) {
        visit(text, Kind::Text);
    }
    let printed = job.transports.iter_mut().map(|t| &mut t.via).chain(&mut job.nets).chain(&mut job.versions);
    printed.for_each(|text| visit(text, Kind::Text));
}

fn evidence(e: &mut Evidence, visit: &mut Visit<'_>) {
    visit(&mut e.file, Kind::Path);
    visit(&mut e.text, Kind::Text);
}

fn decisions(list: &mut [Decision], visit: &mut Visit<'_>) {
    list.iter_mut().filter_map(|d| d.evidence.as_mut()).for_each(|e| evidence(e, visit));
}

fn finding(f: &mut Finding, visit: &mut Visit<'_>) {
    let fixes = f.fixes.iter_mut().flat_map(|x| [&mut x.title, &mut x.when, &mut x.needs, &mut x.cost, &mut x.undo].into_iter().chain(&mut x.commands));
    let words = [&mut f.title, &mut f.why].into_iter().chain(fixes).chain(&mut f.avoid).chain(&mut f.verify);
    words.for_each(|text| visit(text, Kind::Words));
    f.hosts.iter_mut().for_each(|h| visit(h, Kind::Host));
    f.evidence.iter_mut().for_each(|e| evidence(e, visit));
    decisions(&mut f.decisions, visit);
}

fn unknown(u: &mut UnknownWarning, visit: &mut Visit<'_>) {
    visit(&mut u.template, Kind::Template);
    u.hosts.iter_mut().for_each(|h| visit(h, Kind::Host));
    evidence(&mut u.evidence, visit);
}

/// Visits an analysis, its job included.
pub fn analysis(a: &mut Analysis, visit: &mut Visit<'_>) {
    job(&mut a.job, visit);
    a.findings.iter_mut().for_each(|f| finding(f, visit));
    a.notes.iter_mut().chain(&mut a.undecided).for_each(|text| visit(text, Kind::Words));
    a.unknown.iter_mut().for_each(|u| unknown(u, visit));
    for silenced in &mut a.silenced {
        visit(&mut silenced.reason, Kind::Words);
        if let Some(f) = &mut silenced.finding {
            finding(f, visit);
        }
        if let Some(u) = &mut silenced.warning {
            unknown(u, visit);
        }
    }
    decisions(&mut a.walk.decisions, visit);
    visit(&mut a.walk.why, Kind::Words);
    for reason in a.why_not.iter_mut().flat_map(|w| &mut w.reasons) {
        visit(&mut reason.text, Kind::Words);
        if let Some(e) = &mut reason.evidence {
            evidence(e, visit);
        }
    }
}
