//! The attempts that the logs hold.

use crate::job::Job;

/// One attempt in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// 1-based.
    pub number: usize,
    /// `file:line` of its first record.
    pub place: String,
    /// Ranks with a log.
    pub ranks: usize,
    /// Ranks that completed the initialisation of the full communicator.
    pub complete: usize,
    /// Its first warning: place and text.
    pub warning: Option<(String, String)>,
}

/// All attempts, oldest first; empty if there is only one.
pub fn attempts(job: &Job) -> Vec<Attempt> {
    if job.runs.len() < 2 {
        return Vec::new();
    }
    let attempt = |(index, run): (usize, &crate::job::Run)| {
        let world = job.comms.iter().find(|c| c.run == index && c.nranks == job.nranks && !c.is_child);
        let members = world.map(|w| w.members.as_slice()).unwrap_or_default();
        let complete = members.iter().filter(|m| job.procs.get(m.proc).and_then(|p| p.log.comms.get(m.log)).is_some_and(|l| l.complete.is_some())).count();
        let warning = super::story::warnings(job, index).into_iter().next().map(|s| (format!("{}:{}", job.path(s.at.stream), s.at.line), s.text.clone()));
        Attempt { number: index + 1, place: format!("{}:{}", job.path(run.first.at.stream), run.first.at.line), ranks: run.ranks, complete, warning }
    };
    job.runs.iter().enumerate().map(attempt).collect()
}
