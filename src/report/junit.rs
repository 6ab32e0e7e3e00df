//! JUnit XML: the verdict is a test, and every finding is one that did not pass. A cause that was not found is no
//! passed test: that a log does not show it proves little.

use super::view::{confidence, severity};
use super::{clean, ranges, uncoloured, verdict, words};
use crate::rules::{Analysis, Finding, Severity, Verdict};
use maud::{Markup, PreEscaped, Render, html};
use std::io::{self, Write};

/// Text of a log in XML. `maud` escapes the markup, [`clean`] what XML does not allow.
struct T<'a>(&'a str);

impl Render for T<'_> {
    fn render_to(&self, buffer: &mut String) {
        let text: String = clean(self.0).chars().map(|c| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }).collect();
        text.as_str().render_to(buffer);
    }
}

/// Writes the document.
pub fn write(analysis: &Analysis, out: &mut dyn Write) -> io::Result<()> {
    let failed = matches!(analysis.verdict, Verdict::Failed | Verdict::Stalled | Verdict::Degraded);
    let unknown = analysis.verdict == Verdict::Inconclusive;
    let failing = |f: &&Finding| f.is_root();
    let failures = analysis.findings.iter().filter(failing).count() + usize::from(failed);
    let skipped = analysis.findings.iter().filter(|f| f.caused_by.is_some()).count() + usize::from(unknown);
    let tests = analysis.findings.len() + 1;
    let document = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="ncclog" tests=(tests) failures=(failures) errors="0" { (PreEscaped("\n"))
            testsuite name="ncclog" tests=(tests) failures=(failures) errors="0" skipped=(skipped) { (PreEscaped("\n"))
                (verdict_case(analysis, failed, unknown))
                @for finding in &analysis.findings { (case(finding)) }
            } (PreEscaped("\n"))
        }
    };
    out.write_all(document.0.as_bytes())?;
    writeln!(out)
}

fn verdict_case(analysis: &Analysis, failed: bool, unknown: bool) -> Markup {
    let (title, used) = words::headline(analysis);
    let notes: Vec<&str> = analysis.notes.iter().skip(used).map(String::as_str).collect();
    html! {
        testcase classname="ncclog" name="verdict" {
            @if failed { failure type=(verdict(analysis.verdict).to_ascii_lowercase()) message=(T(title)) { (lines(&notes)) } }
            @else if unknown { skipped message=(T(title)) {} system-out { (lines(&notes)) } }
            @else { system-out { (T(title)) "\n" (lines(&notes)) } }
        }
        (PreEscaped("\n"))
    }
}

fn lines(list: &[&str]) -> Markup {
    html! { @for line in list { (T(line)) "\n" } }
}

fn case(finding: &Finding) -> Markup {
    let kind = format!("{}, {}", severity(finding.severity), confidence(finding.confidence));
    let name = format!("{}: {}", finding.id, finding.title);
    html! {
        testcase classname=(format!("ncclog.{}", finding.id)) name=(T(&name)) {
            @if let Some(reason) = finding.caused_by { skipped message=(format!("consequence of {reason}")) {} system-out { (body(finding)) } }
            @else if finding.severity == Severity::Info { system-out { (body(finding)) } }
            @else { failure type=(kind) message=(T(&finding.title)) { (body(finding)) } }
        }
        (PreEscaped("\n"))
    }
}

fn body(finding: &Finding) -> Markup {
    html! {
        @if !finding.why.is_empty() { (T(&finding.why)) "\n" }
        @if !finding.ranks.is_empty() { "ranks " (ranges(&finding.ranks, Some(200))) "\n" }
        @for e in finding.evidence.iter().take(12) { (T(&e.file)) ":" (e.line) "  " (T(uncoloured(&e.text).trim())) "\n" }
        @for fix in &finding.fixes {
            "fix: " (T(&fix.title)) "\n"
            @for command in &fix.commands { "    " (T(command)) "\n" }
        }
    }
}
