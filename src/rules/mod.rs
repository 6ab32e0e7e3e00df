//! Rules: one file a cause, pure functions of the job. The engine orders, folds victims under their cause and
//! suppresses; rules only claim and explain.

mod finding;

pub use finding::{Confidence, Evidence, Finding, Fix, Severity, Verdict};

use crate::job::Job;

/// A cause: its file in `rules/` declares one of these.
#[derive(Debug)]
pub struct Cause {
    /// Stable kebab-case name.
    pub id: &'static str,
    /// Former names.
    pub aliases: &'static [&'static str],
    /// One line: what it is.
    pub summary: &'static str,
    /// The explanation, Markdown, kept beside the rule.
    pub explanation: &'static str,
}

/// The result of an analysis: what the report stage writes.
#[derive(Debug)]
pub struct Analysis {
    /// The job.
    pub job: Job,
    /// Findings in the order in which one would act.
    pub findings: Vec<Finding>,
    /// The verdict.
    pub verdict: Verdict,
    /// What was missing in the logs and how to get it, and what is good about a healthy one.
    pub notes: Vec<String>,
}

/// All causes in the order of the documentation.
pub const CAUSES: &[&Cause] = &[];

/// Asks all rules.
pub fn run(job: Job) -> Analysis {
    Analysis { job, findings: Vec::new(), verdict: Verdict::Inconclusive, notes: Vec::new() }
}
