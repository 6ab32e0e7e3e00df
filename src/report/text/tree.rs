//! The decision tree: as a whole, the part that an analysis walked, and what decided a finding's path.

use super::page::{Page, Palette, paint};
use super::quote;
use super::wrap::columns;
use crate::lang::{self, Lang, Words};
use crate::report::{MIN_WIDTH, PROSE_WIDTH, clean};
use crate::rules::tree::{Branch, Decision, End, Probe, Walk, leaf};
use crate::rules::{Evidence, Finding};
use std::io::{self, Write};

/// Writes all questions with their probes and branches, and the leaves.
pub fn whole(out: &mut dyn Write, width: usize, color: bool, lang: Lang) -> io::Result<()> {
    let (nodes, leaves) = lang::tree(lang);
    let words = lang::words(lang);
    let width = width.max(MIN_WIDTH);
    let palette = if color { Palette::colored() } else { Palette::plain() };
    let mut page = Page { out, width, prose: width.min(PROSE_WIDTH), palette, lang };
    for (index, node) in nodes.iter().enumerate() {
        if index > 0 {
            page.blank()?;
        }
        page.raw(0, &paint(palette.bold, node.id))?;
        page.para(2, "", palette.plain, node.question)?;
        page.para(2, words.logs, palette.plain, node.log)?;
        probes(&mut page, 2, node.probes, &words)?;
        branches(&mut page, 2, node.branches, &words)?;
    }
    for leaf in leaves {
        page.blank()?;
        page.raw(0, &paint(palette.bold, leaf.id))?;
        page.para(2, words.cause, palette.plain, leaf.cause)?;
        page.para(2, words.mend, palette.plain, leaf.remedy)?;
    }
    Ok(())
}

fn probes(page: &mut Page, indent: usize, probes: &[Probe], words: &Words) -> io::Result<()> {
    let palette = page.palette;
    for probe in probes {
        let command = paint(palette.info, probe.command);
        page.raw(indent, &format!("{}{command}", words.probe))?;
        page.para(indent + 7, "", palette.plain, &format!("{}{}", probe.look, words.stop))?;
    }
    Ok(())
}

fn branches(page: &mut Page, indent: usize, branches: &[Branch], words: &Words) -> io::Result<()> {
    let palette = page.palette;
    for branch in branches {
        page.para(indent, "- ", palette.plain, branch.answer)?;
        page.para(indent + 2, words.shown_by, palette.plain, branch.outcome)?;
        page.para(indent + 2, words.then, palette.bold, &target(branch.next))?;
    }
    Ok(())
}

fn target(id: &str) -> String {
    leaf(id).map_or_else(|| id.to_owned(), |l| format!("{id} ({})", l.cause))
}

/// The walk of an analysis, opened where the evidence stopped.
pub fn walked(page: &mut Page, walk: &Walk) -> io::Result<()> {
    let palette = page.palette;
    let (nodes, leaves) = lang::tree(page.lang);
    let words = lang::words(page.lang);
    page.heading("Decision tree")?;
    for decision in &walk.decisions {
        page.raw(0, decision.node)?;
        step(page, 2, decision)?;
    }
    page.raw(0, &paint(palette.bold, walk.at))?;
    page.para(2, "", palette.plain, &walk.why)?;
    if let Some(leaf) = leaves.iter().find(|l| l.id == walk.at) {
        return page.para(2, words.mend, palette.plain, leaf.remedy);
    }
    let Some(node) = nodes.iter().find(|n| n.id == walk.at && walk.end == End::Open) else { return Ok(()) };
    page.para(2, "", palette.plain, node.question)?;
    probes(page, 2, node.probes, &words)?;
    branches(page, 2, node.branches, &words)
}

fn step(page: &mut Page, indent: usize, decision: &Decision) -> io::Result<()> {
    let palette = page.palette;
    page.para(indent, "> ", palette.plain, decision.answer)?;
    if let Some(line) = &decision.evidence {
        proof(page, indent + 2, line)
    } else {
        let words = lang::words(page.lang);
        page.para(indent + 2, "", palette.warning, &page.word("Not decided by the log."))?;
        probes(page, indent + 2, decision.probes, &words)?;
        for branch in decision.outcomes {
            page.para(indent + 2, "- ", palette.plain, &format!("{}: {}{}", target(branch.next), branch.outcome, words.stop))?;
        }
        Ok(())
    }
}

/// `file:line  text`
pub fn proof(page: &mut Page, indent: usize, line: &Evidence) -> io::Result<()> {
    let place = format!("{}:{}", clean(&line.file), line.line);
    let shown = paint(page.palette.dim, &place);
    let room = page.width.saturating_sub(indent + columns(&place) + 2);
    let text = quote(&line.text, room);
    if !text.ends_with('…') {
        return page.raw(indent, &format!("{shown}  {text}"));
    }
    page.raw(indent, &shown)?;
    let text = quote(&line.text, page.width.saturating_sub(indent + 2));
    page.raw(indent + 2, &text)
}

/// A finding's path: one line, and what decided each branch.
pub fn path(page: &mut Page, finding: &Finding) -> io::Result<()> {
    let dim = page.palette.dim;
    if finding.path.len() > 1 {
        page.para(3, &page.label("path:   "), dim, &finding.path.join(" > "))?;
    }
    finding.decisions.iter().try_for_each(|d| {
        if let Some(line) = &d.evidence {
            // The line itself stands among the evidence or in --tree; its place is enough here.
            page.para(5, "", dim, &format!("{}: {} ({}:{})", d.node, d.answer, line.file, line.line))
        } else {
            let commands: Vec<String> = d.probes.iter().map(|p| format!("`{}`", p.command)).collect();
            let text = format!("{}: {}: not decided by the log; {} decides:", d.node, d.answer, commands.join(" or "));
            page.para(5, "", dim, &page.word(&text))?;
            d.outcomes.iter().try_for_each(|b| page.para(7, "- ", dim, &format!("{}: {}", target(b.next), b.outcome)))
        }
    })
}
