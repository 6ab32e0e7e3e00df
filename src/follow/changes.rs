//! What is new since the last look: one line for every finding that comes or goes, and for every verdict.

use crate::report::{clean, verdict};
use crate::rules::{Analysis, Confidence, Finding, Severity, Verdict};

/// What makes a finding the same one at the next look; its numbers may grow.
type Known = (&'static str, Severity, Confidence, Option<&'static str>);

/// Remembers the last look.
#[derive(Debug, Default)]
pub struct Changes {
    verdict: Option<Verdict>,
    findings: Vec<Known>,
}

impl Changes {
    /// The lines for this look, without their time.
    pub fn lines(&mut self, analysis: &Analysis) -> Vec<String> {
        let word = verdict(analysis.verdict);
        let now: Vec<Known> = analysis.findings.iter().map(|f| (f.id, f.severity, f.confidence, f.caused_by)).collect();
        let mut out: Vec<String> = analysis
            .findings
            .iter()
            .zip(&now)
            .filter(|(f, known)| f.severity != Severity::Info && !self.findings.contains(known))
            .map(|(f, _)| format!("{word}  {}", line(f)))
            .collect();
        for (id, severity, ..) in &self.findings {
            if *severity != Severity::Info && !now.iter().any(|k| k.0 == *id) {
                out.push(format!("{word}  no longer: {id}"));
            }
        }
        if out.is_empty() && self.verdict != Some(analysis.verdict) && (self.verdict.is_some() || analysis.verdict != Verdict::Inconclusive) {
            out.push(format!("{word}  {}", summary(analysis)));
        }
        self.verdict = Some(analysis.verdict);
        self.findings = now;
        out
    }
}

/// One finding in one line, with its first proof.
fn line(finding: &Finding) -> String {
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    let sure = match finding.confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    };
    let proof = finding.evidence.first().map_or(String::new(), |e| format!(" [{}:{}]", clean(&e.file), e.line));
    let cause = finding.caused_by.map_or(String::new(), |c| format!(" (because of {c})"));
    format!("{severity} {} ({sure}){cause}: {}{proof}", finding.id, clean(&finding.title))
}

/// How far the job is, in one line.
pub fn summary(analysis: &Analysis) -> String {
    use crate::event::Stage;
    let job = &analysis.job;
    let done = job.ranks.iter().filter(|r| r.stage >= Stage::InitComplete).count();
    let seen = job.ranks.len();
    let total = job.nranks.map_or(String::new(), |n| format!(" of {n}"));
    let net = if job.nets.is_empty() { String::new() } else { format!(", network {}", clean(&job.nets.join(" and "))) };
    format!("{seen}{total} ranks seen, {done} Init COMPLETE{net}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    #[test]
    fn a_finding_is_told_once() {
        let mut changes = Changes::default();
        let empty = analyze_texts(&[("a", "")]);
        assert_eq!(changes.lines(&empty), Vec::<String>::new());
        let text = "node1:1:1 [0] NCCL WARN Cuda failure 'out of memory'\n";
        let bad = analyze_texts(&[("a", text)]);
        assert!(!bad.findings.is_empty());
        let lines = changes.lines(&bad);
        assert!(lines[0].contains(bad.findings[0].id) && lines[0].contains("[a:1]"), "{lines:?}");
        assert_eq!(changes.lines(&bad), Vec::<String>::new());
        assert!(changes.lines(&empty)[0].contains("no longer: "));
    }
}
