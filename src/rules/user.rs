//! A user's own rules, and what the user silenced.

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::unknown::UnknownWarning;
use crate::event::{Pattern, UserPatterns};
use crate::line::records;
use bumpalo::Bump;
use serde::Serialize;

/// What a configuration file adds.
#[derive(Debug)]
pub struct User {
    /// The file.
    pub path: String,
    /// The patterns of the rules.
    pub patterns: Option<UserPatterns>,
    /// The rules.
    pub rules: Vec<UserRule>,
    /// What is silenced.
    pub silences: Vec<Silence>,
}

/// A rule of the user: a record that matches its pattern is its finding.
#[derive(Debug, Clone)]
pub struct UserRule {
    /// Kebab-case name.
    pub id: &'static str,
    /// Kind of the records that its pattern matches.
    pub kind: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// One line.
    pub title: String,
    /// What it means.
    pub text: String,
    /// What to do.
    pub fixes: Vec<Fix>,
    /// How to see that it is mended.
    pub verify: Vec<String>,
}

/// What the user does not want to hear of, with the reason.
#[derive(Debug)]
pub struct Silence {
    /// Only findings with this id.
    pub cause: Option<&'static str>,
    /// Only findings whose first proof line holds it; without a cause, unknown warnings too.
    pub pattern: Option<Pattern>,
    /// Why.
    pub reason: String,
}

/// Something that was silenced: a finding or a group of unknown warnings.
#[derive(Debug, Clone, Serialize)]
pub struct Silenced {
    /// The user's reason.
    pub reason: String,
    /// The finding.
    pub finding: Option<Finding>,
    /// The warnings.
    pub warning: Option<UnknownWarning>,
}

impl User {
    /// Findings of the user's rules.
    pub fn check(&self, ask: Ask<'_>) -> Vec<Finding> {
        self.rules.iter().filter_map(|rule| rule.check(ask)).collect()
    }

    /// Takes the silenced findings out.
    pub fn silence_findings(&self, findings: &mut Vec<Finding>) -> Vec<Silenced> {
        let mut silenced = Vec::new();
        findings.retain(|finding| match self.silences.iter().find(|s| s.covers(finding)) {
            None => true,
            Some(silence) => {
                silenced.push(Silenced { reason: silence.reason.clone(), finding: Some(finding.clone()), warning: None });
                false
            }
        });
        silenced
    }

    /// Takes the silenced unknown warnings out.
    pub fn silence_warnings(&self, warnings: &mut Vec<UnknownWarning>) -> Vec<Silenced> {
        let mut silenced = Vec::new();
        warnings.retain(|warning| {
            let found = self.silences.iter().find(|s| s.cause.is_none() && s.pattern.as_ref().is_some_and(|p| stands_in(p, &warning.evidence)));
            if let Some(silence) = found {
                silenced.push(Silenced { reason: silence.reason.clone(), finding: None, warning: Some(warning.clone()) });
            }
            found.is_none()
        });
        silenced
    }
}

/// What the notes say of the file.
pub fn note(user: &User) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!("{} is in force: {} and {} of your own.", user.path, count(user.rules.len(), "rule"), count(user.silences.len(), "silence"))
}

impl UserRule {
    fn check(&self, ask: Ask<'_>) -> Option<Finding> {
        let hits: Vec<Hit<'_>> = ask.under(self.kind).into_iter().filter(|h| h.entry.kind == self.kind).collect();
        if hits.is_empty() {
            return None;
        }
        let mut finding = Finding::new(self.id, self.severity, self.confidence, self.title.clone());
        finding.ranks = ranks_of(&hits);
        finding.hosts = hosts_of(&hits);
        finding.evidence = hits.iter().take(6).map(Hit::evidence).collect();
        finding.fixes.clone_from(&self.fixes);
        finding.verify.clone_from(&self.verify);
        let lines: u64 = hits.iter().map(Hit::count).sum();
        let who = if finding.ranks.is_empty() { String::new() } else { format!(" of {}", ranks_text(&finding.ranks)) };
        let seen = if lines == 1 { format!("1 line{who} matches this rule's pattern.") } else { format!("{lines} lines{who} match this rule's pattern.") };
        finding.why = if self.text.is_empty() { seen } else { format!("{} {seen}", self.text.trim_end()) };
        Some(finding)
    }
}

impl Silence {
    fn covers(&self, finding: &Finding) -> bool {
        let cause = self.cause.is_none_or(|c| c == finding.id);
        let pattern = self.pattern.as_ref().is_none_or(|p| finding.evidence.first().is_some_and(|e| stands_in(p, e)));
        cause && pattern
    }
}

/// Whether the message of a quoted line holds the pattern; a tied pattern means the message, not the wrappers.
fn stands_in(pattern: &Pattern, evidence: &Evidence) -> bool {
    let arena = Bump::new();
    let mut found = false;
    records(evidence.text.as_bytes(), &arena, |record| found |= pattern.is_match(record.msg));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &'static str, text: &str) -> Finding {
        let mut f = Finding::new(id, Severity::Error, Confidence::Certain, "t");
        f.evidence.push(Evidence { file: "a.log".into(), line: 1, offset: 0, rank: None, text: text.into() });
        f
    }

    fn silence(cause: Option<&'static str>, pattern: Option<&str>) -> Silence {
        Silence { cause, pattern: pattern.map(|p| Pattern::parse("silence.0", p).unwrap()), reason: "known".into() }
    }

    #[test]
    fn a_silence_means_all_that_it_names() {
        let line = "node1:7:8 [0] NCCL WARN Could not enable P2P between dev 0 and 1";
        let f = finding("slow-intra-node", line);
        assert!(silence(Some("slow-intra-node"), None).covers(&f));
        assert!(!silence(Some("gpu-oom"), None).covers(&f));
        assert!(silence(None, Some("^Could not enable P2P")).covers(&f), "tied to the message, not to the line");
        assert!(!silence(None, Some("^node1")).covers(&f));
        assert!(!silence(Some("gpu-oom"), Some("enable P2P")).covers(&f));
    }

    #[test]
    fn only_what_is_silenced_leaves_the_list() {
        let user = User { path: "x".into(), patterns: None, rules: Vec::new(), silences: vec![silence(Some("a"), None)] };
        let mut list = vec![finding("a", ""), finding("b", "")];
        let silenced = user.silence_findings(&mut list);
        assert_eq!(list.iter().map(|f| f.id).collect::<Vec<_>>(), ["b"]);
        assert_eq!(silenced.len(), 1);
        assert_eq!(silenced[0].reason, "known");
    }
}
