//! The first three lines: what it is, the line that proves it, what to do next.

use super::page::{Page, paint};
use super::quote;
use crate::report::words::headline;
use crate::report::{clean, verdict};
use crate::rules::{Analysis, Finding, Verdict};
use std::io;

/// Fewest columns in which a quoted line still says something.
const MIN_QUOTE: usize = 30;

/// Writes them; returns how many notes are used up.
pub fn write(page: &mut Page, analysis: &Analysis) -> io::Result<usize> {
    let root = match analysis.verdict {
        Verdict::Healthy => None,
        _ => analysis.findings.iter().find(|f| f.is_root()),
    };
    let Some(finding) = root else { return without_finding(page, analysis) };
    title(page, analysis.verdict, &finding.title)?;
    proof(page, finding)?;
    next(page, finding, analysis.notes.first())
}

/// Here the notes speak: what is good, or what was missing and how to get it.
fn without_finding(page: &mut Page, analysis: &Analysis) -> io::Result<usize> {
    let (first, used) = headline(analysis);
    title(page, analysis.verdict, first)?;
    match analysis.notes.get(used) {
        Some(note) if analysis.verdict != Verdict::Healthy => {
            let plain = page.palette.plain;
            page.para(0, &page.label("next:  "), plain, note).map(|()| used + 1)
        }
        _ => Ok(used),
    }
}

fn title(page: &mut Page, of: Verdict, text: &str) -> io::Result<()> {
    let label = page.tight(&format!("{}: ", verdict(of)));
    let painted = paint(page.palette.verdict(of), &label);
    let bold = page.palette.bold;
    let text = page.word(text);
    page.labelled(0, &label, &painted, 7, bold, &text)
}

fn proof(page: &mut Page, finding: &Finding) -> io::Result<()> {
    let Some(evidence) = finding.evidence.first() else { return Ok(()) };
    let place = clean(&evidence.file).into_owned() + ":" + &evidence.line.to_string();
    let room = page.width.saturating_sub(7 + super::wrap::columns(&place) + 2);
    let shown = paint(page.palette.dim, &place);
    let label = page.label("proof: ");
    if room >= MIN_QUOTE {
        return page.raw(0, &format!("{label}{shown}  {}", quote(&evidence.text, room)));
    }
    page.raw(0, &format!("{label}{shown}"))?;
    page.raw(7, &quote(&evidence.text, page.width - 7))
}

fn next(page: &mut Page, finding: &Finding, note: Option<&String>) -> io::Result<usize> {
    let command = finding.fixes.iter().flat_map(|f| &f.commands).next();
    if let Some(command) = command {
        let line = format!("{}{}", page.label("next:  "), paint(page.palette.info, &clean(command)));
        page.raw(0, &line)?;
        return Ok(0);
    }
    let plain = page.palette.plain;
    let prose = finding.fixes.first().map(|f| &f.title).or_else(|| finding.verify.first());
    match (prose, note) {
        (Some(text), _) => page.para(0, &page.label("next:  "), plain, text).map(|()| 0),
        (None, Some(note)) => page.para(0, &page.label("next:  "), plain, note).map(|()| 1),
        (None, None) => Ok(0),
    }
}
