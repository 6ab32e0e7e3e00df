//! Findings: what the rules claim. Serialised by the contract `ncclog.analysis/1`.

use super::tree::Decision;
use serde::{Deserialize, Serialize};

/// How bad it is. Ordered: error first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The job failed, hangs or is useless because of it.
    Error,
    /// It works but slower or at risk, or it waits and nothing says why.
    Warning,
    /// Worth knowing.
    Info,
}

/// How sure it is. Ordered: certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The lines admit no other reading.
    Certain,
    /// The best reading; an alternative is named.
    Likely,
    /// Worth checking, with the command that decides.
    Possible,
}

/// A line that proves something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Input path.
    pub file: String,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte offset of the line in the decoded input.
    pub offset: u64,
    /// Rank that printed it, if known.
    pub rank: Option<u32>,
    /// The record's text. May hold any character; writers escape it.
    pub text: String,
}

/// One way to mend it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do, one line.
    pub title: String,
    /// When to choose it.
    pub when: String,
    /// Commands or settings, one a line, with the names of this log.
    pub commands: Vec<String>,
    /// `nothing`, `root` or `reboot`.
    pub needs: String,
    /// What it costs.
    pub cost: String,
    /// How to take it back.
    pub undo: String,
}

/// One claim of a rule.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The cause's stable name.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// One concrete line: which ranks, which peer, which interface.
    pub title: String,
    /// The reading of the evidence.
    pub why: String,
    /// Ranks concerned, ascending.
    pub ranks: Vec<u32>,
    /// Hosts concerned, in order.
    pub hosts: Vec<String>,
    /// Id of the finding in the same list whose consequence this is.
    pub caused_by: Option<&'static str>,
    /// Node ids of the decision path, for the founding causes.
    pub path: Vec<&'static str>,
    /// What decided each branch of the path.
    pub decisions: Vec<Decision>,
    /// The proving lines, most telling first.
    pub evidence: Vec<Evidence>,
    /// What to do, best first.
    pub fixes: Vec<Fix>,
    /// What people do that only hides it.
    pub avoid: Vec<String>,
    /// How to see that it is mended.
    pub verify: Vec<String>,
}

/// What the whole analysis says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Enough evidence that it works.
    Healthy,
    /// Warnings only.
    Degraded,
    /// An error-level finding ended the job.
    Failed,
    /// The log shows waiting.
    Stalled,
    /// Not enough evidence.
    Inconclusive,
}

impl Finding {
    /// A finding without evidence yet.
    pub fn new(id: &'static str, severity: Severity, confidence: Confidence, title: impl Into<String>) -> Self {
        Self {
            id,
            severity,
            confidence,
            title: title.into(),
            why: String::new(),
            ranks: Vec::new(),
            hosts: Vec::new(),
            caused_by: None,
            path: Vec::new(),
            decisions: Vec::new(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            avoid: Vec::new(),
            verify: Vec::new(),
        }
    }

    /// Error or warning, and no consequence of another finding.
    pub fn is_root(&self) -> bool {
        self.severity != Severity::Info && self.caused_by.is_none()
    }
}
