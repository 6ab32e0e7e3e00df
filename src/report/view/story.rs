//! What happened when, where lines carry time.

use crate::digest::Sample;
use crate::job::{Job, Proc};
use crate::line::{Clock, Time, civil_date};
use crate::rules::{Analysis, Evidence, Severity};
use std::collections::BTreeMap;

/// What a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// First line.
    First,
    /// Init START
    Start,
    /// Init COMPLETE
    Complete,
    /// A warning of the library.
    Warning,
    /// A line that proves an error.
    Failure,
    /// Destroyed or aborted.
    End,
    /// Last line.
    Last,
}

impl Kind {
    /// For legends.
    pub fn label(self) -> &'static str {
        match self {
            Self::First => "first line",
            Self::Start => "Init START",
            Self::Complete => "Init COMPLETE",
            Self::Warning => "warning",
            Self::Failure => "error",
            Self::End => "destroyed or aborted",
            Self::Last => "last line",
        }
    }
}

/// One moment.
#[derive(Debug, Clone)]
pub struct Moment<'a> {
    /// Microseconds on the story's clock.
    pub micros: i64,
    /// Rank, if known.
    pub rank: Option<u32>,
    /// Host; empty if unknown.
    pub host: &'a str,
    /// What.
    pub kind: Kind,
    /// The record.
    pub text: &'a str,
}

/// All moments on one clock, ascending.
#[derive(Debug)]
pub struct Story<'a> {
    /// The clock.
    pub clock: Clock,
    /// The moments.
    pub moments: Vec<Moment<'a>>,
    /// Latest time of any line.
    pub end: i64,
}

/// The story on the clock that most lines carry; `None` if too few carry any. Clocks that count since boot tell
/// nothing across hosts.
pub fn story(analysis: &Analysis) -> Option<Story<'_>> {
    let job = &analysis.job;
    let last = job.last_run();
    let mut all: BTreeMap<Clock, Vec<Moment<'_>>> = BTreeMap::new();
    let mut put = |time: Option<Time>, rank, host, kind, text| {
        if let Some(Time { clock, micros }) = time {
            all.entry(clock).or_default().push(Moment { micros, rank, host, kind, text });
        }
    };
    for proc in job.procs.iter().filter(|p| p.run == last) {
        let mut note = |sample: &'_ Sample, rank, kind, text| put(sample.at.time, rank, proc.host.as_str(), kind, text);
        note(&proc.log.first, proc.rank, Kind::First, &proc.log.first.text);
        note(&proc.log.last, proc.rank, Kind::Last, &proc.log.last.text);
        for comm in &proc.log.comms {
            let rank = proc.rank.or_else(|| proc.rank_on(comm.dev));
            let ends = comm.end.as_ref().map(|(_, s)| s);
            for (sample, kind) in [(comm.start.as_ref(), Kind::Start), (comm.complete.as_ref(), Kind::Complete), (ends, Kind::End)] {
                if let Some(sample) = sample {
                    note(sample, rank, kind, &sample.text);
                }
            }
        }
        for (sample, rank) in proc_warnings(proc) {
            note(sample, rank, Kind::Warning, &sample.text);
        }
    }
    let one_host = job.hosts.len() <= 1;
    let (clock, mut moments) = all.into_iter().filter(|(c, _)| *c != Clock::Boot || one_host).max_by_key(|(c, m)| (m.len(), std::cmp::Reverse(*c)))?;
    mark_failures(analysis, &mut moments);
    moments.sort_by_key(|m| (m.micros, m.rank, m.kind));
    let ends = job.streams.iter().filter_map(|s| s.last_time).filter(|t| t.clock == clock).map(|t| t.micros).max();
    let end = moments.last()?.micros.max(ends.unwrap_or(i64::MIN));
    (moments.first()?.micros < end).then_some(Story { clock, moments, end })
}

/// A warning that proves an error is shown as one.
fn mark_failures(analysis: &Analysis, moments: &mut [Moment<'_>]) {
    let errors = analysis.findings.iter().filter(|f| f.severity == Severity::Error);
    let texts: std::collections::BTreeSet<&str> = errors.flat_map(|f| &f.evidence).map(|e| e.text.as_str()).collect();
    for moment in moments.iter_mut().filter(|m| matches!(m.kind, Kind::Warning | Kind::Last) && texts.contains(m.text)) {
        moment.kind = Kind::Failure;
    }
}

/// Kinds whose lines tell of a failure though they have no level.
fn tells_failure(kind: &str) -> bool {
    kind.starts_with("app.") || matches!(kind, "torch.watchdog_timeout" | "torch.abort" | "torch.oom" | "torch.terminate")
}

fn proc_warnings(proc: &Proc) -> impl Iterator<Item = (&Sample, Option<u32>)> {
    use crate::digest::SampleLevel as L;
    let loud = |kind: &str, s: &Sample| matches!(s.level, Some(L::Warn | L::Error)) || tells_failure(kind);
    proc.log.ledger.iter().filter(move |e| loud(&e.kind, &e.first)).map(|e| (&*e.first, proc.rank_on(e.dev)))
}

/// Warnings of one attempt, earliest first as far as clocks compare, else by place.
pub fn warnings(job: &Job, run: usize) -> Vec<&Sample> {
    let mut list: Vec<&Sample> = job.procs.iter().filter(|p| p.run == run).flat_map(proc_warnings).map(|(s, _)| s).collect();
    let clock = list.first().and_then(|s| s.at.time).map(|t| t.clock);
    let comparable = clock.is_some_and(|c| c != Clock::Boot) && list.iter().all(|s| s.at.time.map(|t| t.clock) == clock);
    if comparable {
        list.sort_by_key(|s| (s.at.time, s.at));
    } else {
        list.sort_by_key(|s| (s.at.line, s.at.stream));
    }
    list
}

/// The first thing that went wrong in the last attempt, and whether its being first is known.
pub fn first_warning(analysis: &Analysis) -> Option<(Evidence, bool)> {
    let job = &analysis.job;
    let all = warnings(job, job.last_run());
    let one_stream = all.iter().all(|s| Some(s.at.stream) == all.first().map(|f| f.at.stream));
    let timed = all.iter().all(|s| s.at.time.is_some_and(|t| t.clock != Clock::Boot && Some(t.clock) == all.first().and_then(|f| f.at.time).map(|t| t.clock)));
    let known = one_stream || timed;
    let of_root = || analysis.findings.iter().find(|f| f.is_root()).and_then(|f| f.evidence.first()).cloned();
    match all.first() {
        Some(first) if known => {
            Some((Evidence { file: job.path(first.at.stream).to_owned(), line: first.at.line, offset: first.at.offset, rank: None, text: first.text.clone() }, true))
        }
        Some(_) => of_root().map(|e| (e, false)),
        None => None,
    }
}

/// A time as people write it; `with_date` only where the clock has one.
pub fn clock_text(clock: Clock, micros: i64, with_date: bool) -> String {
    const DAY: i64 = 86_400_000_000;
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let seconds = rest / 1_000_000;
    let time = format!("{:02}:{:02}:{:02}.{:03}", seconds / 3600, seconds / 60 % 60, seconds % 60, rest % 1_000_000 / 1000);
    match clock {
        Clock::Boot => format!("{}.{:03} s after boot", micros / 1_000_000, micros.rem_euclid(1_000_000) / 1000),
        Clock::Day => time,
        Clock::Date | Clock::YearDay if !with_date => time,
        Clock::Date => {
            let (year, month, day) = civil_date(days);
            format!("{year:04}-{month:02}-{day:02} {time}")
        }
        Clock::YearDay => {
            // Day 0 of that clock is the first of January of a leap year.
            let (_, month, day) = civil_date(days + 10_957);
            format!("{month:02}-{day:02} {time}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_write_them() {
        assert_eq!(clock_text(Clock::Date, 1_709_164_801_500_000, true), "2024-02-29 00:00:01.500");
        assert_eq!(clock_text(Clock::Date, 1_709_164_801_500_000, false), "00:00:01.500");
        assert_eq!(clock_text(Clock::YearDay, 59 * 86_400_000_000, true), "02-29 00:00:00.000");
        assert_eq!(clock_text(Clock::Day, 3_723_004_000, true), "01:02:03.004");
        assert_eq!(clock_text(Clock::Boot, 12_345_000, true), "12.345 s after boot");
    }
}
