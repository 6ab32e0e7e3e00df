//! The findings in the order in which one would act, each with its proof and its fixes; consequences are one line
//! under their cause.

use super::page::{Page, paint};
use super::wrap::{columns, shorten};
use super::{quote, tree};
use crate::lang;
use crate::report::view::terms;
use crate::report::{clean, is_sentence, plural, ranges};
use crate::rules::{Confidence, Evidence, Finding, Fix, Severity};
use std::io;

/// Most lines of evidence that are quoted for one finding.
const MAX_EVIDENCE: usize = 4;

/// Most consequences listed under one finding.
const MAX_CONSEQUENCES: usize = 6;

/// Writes the section.
pub fn write(page: &mut Page, findings: &[Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    let heads = heads(findings);
    page.heading(&heading(findings, &heads))?;
    for (number, head) in (1..).zip((0..findings.len()).filter(|i| heads[*i] == *i)) {
        if number > 1 {
            page.blank()?;
        }
        let victims: Vec<&Finding> = (0..findings.len()).filter(|i| *i != head && heads[*i] == head).map(|i| &findings[i]).collect();
        finding(page, number, &findings[head], &victims)?;
    }
    Ok(())
}

fn heading(findings: &[Finding], heads: &[usize]) -> String {
    let roots: Vec<&Finding> = (0..findings.len()).filter(|i| heads[*i] == *i).map(|i| &findings[i]).collect();
    let count = |severity| roots.iter().filter(|f| f.severity == severity).count() as u64;
    let victims = (findings.len() - roots.len()) as u64;
    let parts = [
        (count(Severity::Error), plural(count(Severity::Error), "error")),
        (count(Severity::Warning), plural(count(Severity::Warning), "warning")),
        (count(Severity::Info), format!("{} info", count(Severity::Info))),
        (victims, plural(victims, "consequence")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect();
    format!("Findings: {}", parts.join(", "))
}

/// For each finding the index of the one that it is shown under. One without a cause in the list, or in a ring of
/// causes, is shown by itself.
pub fn heads(findings: &[Finding]) -> Vec<usize> {
    let cause = |i: usize| findings[i].caused_by.and_then(|id| findings.iter().position(|f| f.id == id));
    (0..findings.len())
        .map(|start| {
            let mut at = start;
            for _ in 0..findings.len() {
                match cause(at) {
                    Some(next) => at = next,
                    None => return at,
                }
            }
            start
        })
        .collect()
}

fn tag(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let confidence = match finding.confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    };
    format!("[{severity}, {confidence}]")
}

fn finding(page: &mut Page, number: usize, finding: &Finding, victims: &[&Finding]) -> io::Result<()> {
    let palette = page.palette;
    let tag = page.word(&tag(finding)).into_owned();
    let label = format!("{number}. {tag} {}: ", finding.id);
    let painted = format!("{number}. {} {}: ", paint(palette.severity(finding.severity), &tag), paint(palette.bold, finding.id));
    page.labelled(0, &label, &painted, 3, palette.bold, &finding.title)?;
    gloss(page, finding)?;
    if !finding.why.is_empty() {
        page.para(3, "", palette.plain, &finding.why)?;
    }
    concerned(page, finding)?;
    if finding.severity == Severity::Info && victims.is_empty() {
        return note(page, finding);
    }
    for line in finding.evidence.iter().take(MAX_EVIDENCE) {
        evidence(page, line)?;
    }
    if let Some(more @ 1..) = finding.evidence.len().checked_sub(MAX_EVIDENCE) {
        let text = format!("… {} in --format json", plural(more as u64, "more line"));
        page.para(3, "", palette.dim, &page.word(&text))?;
    }
    consequences(page, victims)?;
    tree::path(page, finding)?;
    for (index, one) in finding.fixes.iter().enumerate() {
        fix(page, one, (finding.fixes.len() > 1).then_some(index + 1))?;
    }
    for text in &finding.avoid {
        page.para(3, &page.label("avoid:  "), palette.plain, text)?;
    }
    for text in &finding.verify {
        verify(page, text)?;
    }
    Ok(())
}

/// Where the cause is explained in the user's language; in a line what it is, where its findings are not translated.
fn gloss(page: &mut Page, finding: &Finding) -> io::Result<()> {
    let (plain, info) = (page.palette.plain, page.palette.info);
    match lang::summary(page.lang, finding.id) {
        Some(_) if lang::explanation(page.lang, finding.id).is_some() => page.para(3, "详解： ", info, &format!("`ncclog explain {} --lang zh`", finding.id)),
        Some(summary) => page.para(3, "含义： ", plain, summary),
        None => Ok(()),
    }
}

/// What is only worth knowing must not bury the verdict: one line of proof, the first thing to do, where the rest is.
fn note(page: &mut Page, finding: &Finding) -> io::Result<()> {
    if let Some(first) = finding.evidence.first() {
        evidence(page, first)?;
    }
    if let Some(one) = finding.fixes.first() {
        page.para(3, &page.label("could:  "), page.palette.plain, &one.title)?;
    }
    page.para(3, &page.label("more:   "), page.palette.dim, &format!("`ncclog explain {}`", finding.id))
}

/// Which ranks and hosts it concerns, on one line.
fn concerned(page: &mut Page, finding: &Finding) -> io::Result<()> {
    let mut parts = Vec::new();
    if !finding.ranks.is_empty() {
        let name = if finding.ranks.len() == 1 { "rank" } else { "ranks" };
        parts.push(format!("{name} {}", ranges(&finding.ranks, Some(28))));
    }
    match finding.hosts.as_slice() {
        [] => {}
        [one] => parts.push(format!("host {one}")),
        [first, second, third, _, rest @ ..] => parts.push(format!("hosts {first}, {second}, {third} and {} more", rest.len() + 1)),
        few => parts.push(format!("hosts {}", few.join(", "))),
    }
    if parts.is_empty() {
        return Ok(());
    }
    let (dim, room) = (page.palette.dim, page.prose - 3);
    let parts: Vec<_> = parts.iter().map(|p| page.word(p)).collect();
    let line = shorten(&clean(&parts.join(" · ")), room);
    page.raw(3, &paint(dim, &line))
}

/// `file:line  rank 3  text`; the text on its own line if even without its header it would have to be cut.
fn evidence(page: &mut Page, evidence: &Evidence) -> io::Result<()> {
    let mut place = format!("{}:{}", clean(&evidence.file), evidence.line);
    if let Some(rank) = evidence.rank {
        place = format!("{place}  rank {rank}");
    }
    let shown = paint(page.palette.dim, &place);
    let line = quote(&evidence.text, page.width.saturating_sub(5 + columns(&place)));
    if !line.ends_with('…') {
        return page.raw(3, &format!("{shown}  {line}"));
    }
    page.raw(3, &shown)?;
    let line = quote(&evidence.text, page.width - 5);
    page.raw(5, &line)
}

fn fix(page: &mut Page, fix: &Fix, number: Option<usize>) -> io::Result<()> {
    let (plain, bold, dim) = (page.palette.plain, page.palette.bold, page.palette.dim);
    let label = page.label(&number.map_or_else(|| "fix:    ".to_owned(), |n| format!("{:8}", format!("fix {n}:"))));
    page.labelled(3, &label, &label, 11, bold, &fix.title)?;
    if !fix.when.is_empty() {
        page.para(5, &page.label("when: "), plain, &fix.when)?;
    }
    for command in &fix.commands {
        page.command(7, command)?;
    }
    let terms: Vec<String> = terms(fix).map(|(name, text)| format!("{}{}", page.tight(&format!("{name}: ")), page.word(text))).collect();
    if terms.is_empty() {
        return Ok(());
    }
    page.para(5, "", dim, &terms.join(" · "))
}

/// A sentence is broken like prose, anything else is a command.
fn verify(page: &mut Page, text: &str) -> io::Result<()> {
    if is_sentence(text) {
        let plain = page.palette.plain;
        return page.para(3, &page.label("verify: "), plain, text);
    }
    let command = paint(page.palette.info, &clean(text));
    page.raw(3, &format!("{}{command}", page.label("verify: ")))
}

fn consequences(page: &mut Page, victims: &[&Finding]) -> io::Result<()> {
    for victim in victims.iter().take(MAX_CONSEQUENCES) {
        let room = page.prose - 3;
        let line = shorten(&clean(&format!("{}{}: {}", page.label("led to: "), victim.id, victim.title)), room);
        let dim = page.palette.dim;
        page.raw(3, &paint(dim, &line))?;
    }
    match victims.len().checked_sub(MAX_CONSEQUENCES) {
        Some(more @ 1..) => page.raw(3, &page.word(&format!("… {}", plural(more as u64, "more consequence")))),
        _ => Ok(()),
    }
}
