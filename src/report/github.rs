//! Workflow commands of GitHub Actions: annotations on the run's page.
//!
//! Nothing but commands is printed: a runner looks for commands in every line, so that quoted log text could give
//! orders.

use super::view::{confidence, shorten};
use super::{clean, heads, plural, ranges, uncoloured, verdict, words};
use crate::rules::{Analysis, Finding, Severity, Verdict};
use std::io::{self, Write};

/// GitHub shows this many annotations of a level in a step.
const MOST_OF_A_LEVEL: usize = 10;

/// Longest message, in characters.
const MAX_MESSAGE: usize = 3000;

/// Writes the commands.
pub fn write(analysis: &Analysis, out: &mut dyn Write) -> io::Result<()> {
    let findings = &analysis.findings;
    let heads = heads(findings);
    let roots: Vec<&Finding> = (0..findings.len()).filter(|i| heads[*i] == *i).map(|i| &findings[i]).collect();
    let victims = (findings.len() - roots.len()) as u64;
    for (level, severity) in [("error", Severity::Error), ("warning", Severity::Warning), ("notice", Severity::Info)] {
        let all: Vec<&&Finding> = roots.iter().filter(|f| f.severity == severity).collect();
        // The verdict takes one of the notices.
        let room = if severity == Severity::Info { MOST_OF_A_LEVEL - 1 } else { MOST_OF_A_LEVEL };
        for (index, finding) in all.iter().take(room).enumerate() {
            let hidden = if index + 1 == room { all.len() - room } else { 0 };
            annotation(out, level, finding, hidden)?;
        }
    }
    let led = if victims > 0 { format!(" It led to {}.", plural(victims, "consequence")) } else { String::new() };
    let mut message = format!("{}.{led}", words::headline(analysis).0.trim_end_matches('.'));
    if analysis.verdict == Verdict::Inconclusive {
        message.extend(analysis.notes.iter().take(3).flat_map(|n| ["\n", n.as_str()]));
    }
    writeln!(out, "::notice title={}::{}", property(&format!("ncclog: {}", verdict(analysis.verdict))), data(&shorten(&message, MAX_MESSAGE)))
}

fn annotation(out: &mut dyn Write, level: &str, finding: &Finding, hidden: usize) -> io::Result<()> {
    let place = finding.evidence.first().map_or(String::new(), |e| format!("file={},line={},", property(&e.file), e.line.max(1)));
    let mut lines = vec![finding.title.clone()];
    if !finding.why.is_empty() {
        lines.push(finding.why.clone());
    }
    if !finding.ranks.is_empty() {
        lines.push(format!("Ranks: {}", ranges(&finding.ranks, Some(80))));
    }
    lines.extend(finding.evidence.iter().take(3).map(|e| format!("{}:{}  {}", e.file, e.line, shorten(uncoloured(&e.text).trim(), 300))));
    if let Some(fix) = finding.fixes.first() {
        lines.push(format!("Fix: {}", fix.title));
        lines.extend(fix.commands.iter().take(4).map(|c| format!("  {c}")));
    }
    if hidden > 0 {
        lines.push(format!("… and {hidden} more of this level; see --format text"));
    }
    let text: Vec<String> = lines.iter().map(|l| clean(l).into_owned()).collect();
    let title = property(&format!("{} ({})", finding.id, confidence(finding.confidence)));
    writeln!(out, "::{level} {place}title={title}::{}", data(&shorten(&text.join("\n"), MAX_MESSAGE)))
}

/// Escapes a message. A line end is part of it; anything else that a terminal would obey is shown.
fn data(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|l| clean(l).replace('%', "%25")).collect();
    lines.join("%0A")
}

/// Escapes a property.
fn property(text: &str) -> String {
    clean(text).replace('%', "%25").replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_no_orders() {
        assert_eq!(data("a%0A::set-env\r\n::stop"), "a%250A::set-env\\x0d%0A::stop");
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25\\x0a");
    }
}
