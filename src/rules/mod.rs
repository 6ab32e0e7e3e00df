//! Rules: one file a cause, pure functions of the job. The engine orders, folds victims under their cause and
//! suppresses; rules only claim and explain.

mod engine;
mod finding;
mod notes;
mod verdict;

pub mod query;

pub use engine::run;
pub use finding::{Confidence, Evidence, Finding, Fix, Severity, Verdict};

use crate::job::Job;
use query::Ask;

/// What a cause is, for people.
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

/// A cause with its test. Each file in `rules/` declares one.
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// Looks for it.
    pub check: fn(Ask<'_>) -> Vec<Finding>,
    /// Ids of findings that are its consequences where both stand.
    pub explains: &'static [&'static str],
    /// It stands only where nothing else does.
    pub only_alone: bool,
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

/// All rules in the order of suspicion: a cause can be the reason only of causes behind it.
pub static RULES: &[Rule] = &[];

/// All causes in the order of suspicion.
pub fn causes() -> impl Iterator<Item = &'static Cause> {
    RULES.iter().map(|r| &r.cause)
}

/// Finds a cause by its name or a former one.
pub fn cause(name: &str) -> Option<&'static Cause> {
    causes().find(|c| c.id == name || c.aliases.contains(&name))
}
