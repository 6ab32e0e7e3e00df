//! Findings in another language. The rules write English; the catalogue knows their texts.

use super::catalogue::{Catalogue, REMARK};
use super::{Lang, tree, zh};
use crate::rules::tree::{Decision, LEAVES};
use crate::rules::{Analysis, Finding};

/// Puts what an analysis says into `lang`, as far as it is translated: all that the founding causes say, the titles of the
/// others, the tree's questions, notes. Names, numbers and commands stay, and so does every line of a log. For reports that people
/// read; programs get English.
pub fn translate(lang: Lang, analysis: &mut Analysis) {
    if lang == Lang::En {
        return;
    }
    let titles = Catalogue::new(&[zh::COMMON, zh::TITLES]);
    let notes = Catalogue::new(&[zh::COMMON, zh::NOTES]);
    for item in &mut analysis.findings {
        let own = zh::TABLES.iter().find(|(id, _)| *id == item.id).map(|(_, table)| Catalogue::new(&[*table, zh::COMMON]));
        match own {
            Some(own) if LEAVES.iter().any(|l| l.cause == item.id) => finding(&own, item),
            own => {
                if let Some(title) = own.as_ref().unwrap_or(&titles).title(&item.title) {
                    item.title = title;
                }
            }
        }
        item.decisions.iter_mut().for_each(|d| decision(lang, d));
    }
    analysis.walk.decisions.iter_mut().for_each(|d| decision(lang, d));
    analysis.notes.iter_mut().for_each(|n| text(&notes, n));
    if let Some(of) = analysis.findings.iter().find(|f| analysis.walk.why.starts_with(&format!("{}: ", f.id))) {
        // At a leaf the walk repeats the title of its finding.
        analysis.walk.why = format!("{}：{}。", of.id, of.title);
    } else {
        text(&notes, &mut analysis.walk.why);
    }
}

fn finding(catalogue: &Catalogue, finding: &mut Finding) {
    text(catalogue, &mut finding.title);
    text(catalogue, &mut finding.why);
    for fix in &mut finding.fixes {
        for part in [&mut fix.title, &mut fix.when, &mut fix.cost, &mut fix.undo] {
            text(catalogue, part);
        }
        fix.commands.iter_mut().for_each(|c| line(catalogue, c));
    }
    finding.avoid.iter_mut().for_each(|t| text(catalogue, t));
    finding.verify.iter_mut().for_each(|t| line(catalogue, t));
}

fn text(catalogue: &Catalogue, text: &mut String) {
    if let Some(other) = catalogue.text(text) {
        *text = other;
    }
}

/// A command with a remark, or a sentence.
fn line(catalogue: &Catalogue, line: &mut String) {
    if line.contains(REMARK) || line.starts_with('#') {
        if let Some(other) = catalogue.line(line) {
            *line = other;
        }
    } else {
        text(catalogue, line);
    }
}

/// The same question of the tree.
fn decision(lang: Lang, decision: &mut Decision) {
    let (nodes, _) = tree(lang);
    let Some(node) = nodes.iter().find(|n| n.id == decision.node) else { return };
    decision.question = node.question;
    if let Some(branch) = node.branches.iter().find(|b| b.next == decision.next) {
        decision.answer = branch.answer;
    }
    if !decision.probes.is_empty() {
        decision.probes = node.probes;
    }
    if !decision.outcomes.is_empty() {
        decision.outcomes = node.branches;
    }
}
