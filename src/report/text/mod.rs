//! The report for people: three lines that suffice, then the findings, the ranks, and what was missing.

mod asides;
mod findings;
mod head;
mod page;
mod ranks;
mod tree;
mod wrap;

pub use findings::heads;
pub use tree::whole as tree;
pub use wrap::wrap;

use super::{MIN_WIDTH, Options, PROSE_WIDTH, clean, plural, uncoloured};
use crate::event::Library;
use crate::job::Job;
use crate::rules::Analysis;
use page::{Page, Palette};
use std::io::{self, Write};

/// Writes the report.
pub fn write(analysis: &Analysis, out: &mut dyn Write, options: &Options) -> io::Result<()> {
    let width = options.width.max(MIN_WIDTH);
    let palette = if options.color { Palette::colored() } else { Palette::plain() };
    let mut page = Page { out, width, prose: width.min(PROSE_WIDTH), palette, lang: options.lang };
    let notes_shown = head::write(&mut page, analysis)?;
    if options.brief {
        return Ok(());
    }
    page.blank()?;
    let summary: Vec<_> = summary(&analysis.job);
    let summary: Vec<_> = summary.iter().map(|p| page.word(p)).collect();
    page.para(0, "", palette.dim, &summary.join(" · "))?;
    findings::write(&mut page, &analysis.findings)?;
    asides::silenced(&mut page, &analysis.silenced)?;
    asides::why_not(&mut page, &analysis.why_not)?;
    if options.tree {
        tree::walked(&mut page, &analysis.walk)?;
    }
    asides::unknown(&mut page, &analysis.unknown)?;
    ranks::write(&mut page, &analysis.job)?;
    list(&mut page, "Notes", analysis.notes.iter().skip(notes_shown).cloned())?;
    let problems = analysis.job.streams.iter().filter_map(|s| s.problem.as_ref().map(|p| format!("{}: {p}", s.path)));
    list(&mut page, "Inputs not wholly read", problems)
}

fn list(page: &mut Page, title: &str, items: impl Iterator<Item = String>) -> io::Result<()> {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(());
    }
    page.heading(title)?;
    let plain = page.palette.plain;
    items.try_for_each(|item| page.para(0, "- ", plain, &item))
}

/// One line: which library, how many ranks and nodes, which network, how much was read.
fn summary(job: &Job) -> Vec<String> {
    let mut parts = Vec::new();
    let name = match job.library {
        Some(Library::Nccl) => "NCCL",
        Some(Library::Rccl) => "RCCL",
        None => "",
    };
    if !name.is_empty() || !job.versions.is_empty() {
        parts.push(format!("{name} {}", job.versions.join(", ")).trim().to_owned());
    }
    match (job.nranks, job.nnodes) {
        (Some(ranks), Some(nodes)) => parts.push(format!("{} on {}", plural(ranks.into(), "rank"), plural(nodes.into(), "node"))),
        (Some(ranks), None) => parts.push(plural(ranks.into(), "rank")),
        (None, Some(nodes)) => parts.push(plural(nodes.into(), "node")),
        (None, None) => {}
    }
    if !job.nets.is_empty() {
        parts.push(format!("network {}", job.nets.join(", ")));
    }
    if job.runs.len() > 1 {
        parts.push(format!("{} attempts, the last one is shown", job.runs.len()));
    }
    let (lines, nccl) = job.streams.iter().fold((0u64, 0u64), |(l, n), s| (l.saturating_add(s.lines), n.saturating_add(s.nccl_lines)));
    let name = if name.is_empty() { "NCCL" } else { name };
    parts.push(format!("{}, {} ({nccl} {name})", plural(job.streams.len() as u64, "input"), plural(lines, "line")));
    parts
}

/// A record as evidence in at most `width` columns. If it must be cut, the header goes first: the message tells more.
fn quote(text: &str, width: usize) -> String {
    let text = uncoloured(text);
    let text = clean(&text);
    let text = text.trim();
    if wrap::columns(text) <= width {
        return text.to_owned();
    }
    match text.find(" NCCL ") {
        Some(at) => wrap::shorten(&format!("…{}", &text[at..]), width),
        None => wrap::shorten(text, width),
    }
}
