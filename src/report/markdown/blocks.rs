//! The parts of the Markdown report, in reading order, each with its weight.

use super::escape::{cell, code, fenced, prose};
use super::fit::Block;
use crate::lang::{self, Lang, label, word};
use crate::report::view::{Board, Standing, attempts, common_settings, compare, confidence, facts, first_warning, message, praise, severity, shorten, terms};
use crate::report::{heads, is_sentence, plural, ranges, stage, uncoloured, verdict, words};
use crate::rules::{Analysis, Evidence, Finding, Fix, Severity, Verdict};
use std::fmt::Write;

/// Longest quoted line, in characters.
const MAX_LINE: usize = 500;

/// Most lines of evidence of one finding.
const MAX_EVIDENCE: usize = 12;

/// Most findings with all their text; of the others the title stays.
const MAX_WHOLE: usize = 24;

/// The whole report.
pub fn report(analysis: &Analysis, lang: Lang) -> Vec<Block> {
    let board = Board::new(analysis);
    let mut blocks = vec![Block::new("verdict", 0, head(analysis, lang))];
    let good = praise(analysis, &board);
    if !good.is_empty() {
        let lines: Vec<String> = good.iter().map(|l| format!("- {}", prose(l))).collect();
        blocks.push(Block::new("what is good", 1, format!("{}\n\n", lines.join("\n"))));
    }
    blocks.push(Block::new("facts", 2, facts_table(analysis, &board, lang)));
    blocks.extend(findings(analysis, lang));
    blocks.extend(first_error(analysis, lang));
    blocks.extend(ranks(analysis, &board, lang));
    blocks.extend(differences(analysis, lang));
    blocks.extend(runs(analysis, lang));
    blocks.extend(missing(analysis, lang));
    blocks.extend(settings(analysis, lang));
    let tail = format!("\n---\nWritten by ncclog {} from the logs alone.\n", env!("CARGO_PKG_VERSION"));
    blocks.push(Block::new("signature", 0, tail));
    blocks
}

/// Verdict, proof, next step.
pub fn head(analysis: &Analysis, lang: Lang) -> String {
    let title = word(lang, words::headline(analysis).0);
    let mut out = format!("## {}{}\n\n", label(lang, verdict(analysis.verdict)), prose(&shorten(&title, 600)));
    let root = analysis.findings.iter().find(|f| f.is_root()).filter(|_| analysis.verdict != Verdict::Healthy);
    if let Some(proof) = root.and_then(|f| f.evidence.first()) {
        let _ = write!(out, "**{}** {}\n{}\n", word(lang, "Proof:"), code(&place(proof)), fenced("text", &[line(proof)]));
    }
    let step = root.and_then(|f| f.fixes.first());
    if let Some(step) = step {
        let _ = writeln!(out, "**{}** {}", word(lang, "Next:"), prose(&shorten(&step.title, 400)));
        let command = root.and_then(|f| f.fixes.iter().flat_map(|f| &f.commands).next());
        if let Some(command) = command {
            out.push_str(&fenced("sh", &[shorten(command, MAX_LINE)]));
        }
    }
    out
}

fn place(evidence: &Evidence) -> String {
    let rank = evidence.rank.map_or(String::new(), |r| format!(" (rank {r})"));
    format!("{}:{}{rank}", shorten(&evidence.file, 200), evidence.line)
}

fn line(evidence: &Evidence) -> String {
    shorten(uncoloured(&evidence.text).trim(), MAX_LINE)
}

/// The job's facts.
pub fn facts_table(analysis: &Analysis, board: &Board, lang: Lang) -> String {
    let mut out = format!("\n### {}\n\n| | |\n|---|---|\n", word(lang, "Job"));
    for (name, value) in facts(&analysis.job, board) {
        let _ = writeln!(out, "| {} | {} |", word(lang, name), prose(&shorten(&lang::fact(lang, name, &value), 600)));
    }
    out
}

/// One block a finding's core, one its evidence, so that evidence of the last goes first.
pub fn findings(analysis: &Analysis, lang: Lang) -> Vec<Block> {
    let all = &analysis.findings;
    let heads = heads(all);
    let roots: Vec<usize> = (0..all.len()).filter(|i| heads[*i] == *i).collect();
    let mut blocks = Vec::new();
    if !roots.is_empty() {
        blocks.push(Block::new("findings", 0, format!("\n### {}\n", word(lang, "Findings"))));
    }
    for (order, root) in roots.iter().enumerate() {
        let (finding, number, late) = (&all[*root], order + 1, order as u32);
        let victims: Vec<&Finding> = (0..all.len()).filter(|i| i != root && heads[*i] == *root).map(|i| &all[i]).collect();
        let (severe, sure) = (word(lang, severity(finding.severity)), word(lang, confidence(finding.confidence)));
        let title = format!("\n#### {number}. {} ({severe}, {sure}) {}\n\n", prose(&shorten(&finding.title, 400)), code(finding.id));
        // The first finding's core outlives all else; an info's goes before an error's.
        let minor = if finding.severity == Severity::Info { 20 } else { 0 };
        blocks.push(Block::new(format!("finding {number} ({})", finding.id), 3 + minor + late.min(900), title));
        if order >= MAX_WHOLE {
            continue;
        }
        let weight = |base: u32| base + minor + late;
        blocks.push(Block::new(format!("reading of finding {number}"), weight(4), reading(finding, lang)));
        blocks.push(Block::new(format!("fixes of finding {number}"), weight(8), remedies(finding, lang)));
        if !finding.evidence.is_empty() {
            let name = format!("evidence of finding {number} ({})", plural(finding.evidence.len() as u64, "line"));
            blocks.push(Block::new(name, weight(40), evidence(finding, lang)));
        }
        if !victims.is_empty() {
            blocks.push(Block::new(format!("consequences of finding {number}"), weight(60), consequences(&victims, lang)));
        }
    }
    blocks
}

fn reading(finding: &Finding, lang: Lang) -> String {
    let mut out = String::new();
    let mut who = Vec::new();
    if !finding.ranks.is_empty() {
        who.push(format!("{} {}", if finding.ranks.len() == 1 { "rank" } else { "ranks" }, ranges(&finding.ranks, Some(100))));
    }
    if !finding.hosts.is_empty() {
        let names: Vec<String> = finding.hosts.iter().take(8).map(|h| code(&shorten(h, 80))).collect();
        let more = finding.hosts.len().saturating_sub(8);
        who.push(names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() });
    }
    if !finding.why.is_empty() {
        let _ = writeln!(out, "{}\n", prose(&finding.why));
    }
    if !who.is_empty() {
        let _ = writeln!(out, "{}\n", word(lang, &format!("Concerns {}.", who.join(" on "))));
    }
    out
}

fn evidence(finding: &Finding, lang: Lang) -> String {
    let shown: Vec<String> = finding.evidence.iter().take(MAX_EVIDENCE).map(|e| format!("{}  {}", place(e), line(e))).collect();
    let more = finding.evidence.len().saturating_sub(MAX_EVIDENCE);
    let more = if more > 0 { format!("\n{}\n", word(lang, &format!("… {} in `--format json`", plural(more as u64, "more line")))) } else { String::new() };
    let count = plural(finding.evidence.len() as u64, "line");
    let title = format!("Evidence ({count})");
    format!("<details><summary>{}</summary>\n\n{}{more}\n</details>\n\n", word(lang, &title), fenced("text", &shown))
}

fn remedies(finding: &Finding, lang: Lang) -> String {
    let mut out = String::new();
    for one in finding.fixes.iter().take(8) {
        fix(&mut out, one, lang);
    }
    for text in finding.avoid.iter().take(8) {
        let _ = writeln!(out, "- **{}** {}", word(lang, "Avoid:"), prose(text));
    }
    for text in finding.verify.iter().take(8) {
        let shown = if is_sentence(text) { prose(text) } else { code(&shorten(text, MAX_LINE)) };
        let _ = writeln!(out, "- **{}** {shown}", word(lang, "Verify:"));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn fix(out: &mut String, fix: &Fix, lang: Lang) {
    let when = if fix.when.is_empty() { String::new() } else { format!(" {}{}", label(lang, "When"), prose(&fix.when)) };
    let terms: Vec<String> = terms(fix).map(|(name, value)| format!("{}{}", label(lang, name), prose(&word(lang, value)))).collect();
    let terms = if terms.is_empty() { String::new() } else { format!(" ({})", terms.join("; ")) };
    let title = prose(fix.title.trim_end_matches('.'));
    let stop = if title.ends_with(['?', '!', '。', '？', '！']) { "" } else { lang::words(lang).stop };
    let _ = writeln!(out, "- **{}** {title}{stop}{when}{terms}", word(lang, "Fix:"));
    if !fix.commands.is_empty() {
        let commands: Vec<String> = fix.commands.iter().take(20).map(|c| shorten(c, MAX_LINE)).collect();
        for line in fenced("sh", &commands).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
}

fn consequences(victims: &[&Finding], lang: Lang) -> String {
    const MOST: usize = 20;
    let mut out = format!("<details><summary>{}</summary>\n\n", word(lang, &format!("Led to {}", plural(victims.len() as u64, "consequence"))));
    for victim in victims.iter().take(MOST) {
        let _ = writeln!(out, "- {} {}", code(victim.id), prose(&shorten(&victim.title, 300)));
    }
    if victims.len() > MOST {
        let _ = writeln!(out, "- {}", word(lang, &format!("… {} more", victims.len() - MOST)));
    }
    out + "\n</details>\n\n"
}

/// The first warning, if there is one and it is not the proof already.
fn first_error(analysis: &Analysis, lang: Lang) -> Option<Block> {
    let (first, known) = first_warning(analysis)?;
    let note = if known { "" } else { " (by the diagnosis: the clocks of these logs do not compare)" };
    Some(Block::new("first warning", 5, format!("\n### {}{}\n\n{}\n{}", word(lang, "First warning"), word(lang, note), code(&place(&first)), fenced("text", &[line(&first)]))))
}

/// Ranks by how far they came.
fn ranks(analysis: &Analysis, board: &Board, lang: Lang) -> Option<Block> {
    if board.places.is_empty() {
        return None;
    }
    let mut groups: std::collections::BTreeMap<(Standing, _), Vec<u32>> = std::collections::BTreeMap::new();
    for place in &board.places {
        groups.entry((place.standing, place.stage)).or_default().push(place.rank);
    }
    let mut out = format!("\n### {}\n\n| {} | {} | |\n|---|---|---|\n", word(lang, "Ranks"), word(lang, "ranks"), word(lang, "stage reached"));
    for ((standing, reached), ranks) in groups {
        let reached = reached.map_or("none", |s| stage(s, &analysis.job.versions));
        let mark = if standing.label() == reached {
            String::new()
        } else if standing.stands_out() {
            format!("**{}**", word(lang, standing.label()))
        } else {
            word(lang, standing.label()).into_owned()
        };
        let reached = word(lang, reached);
        let _ = writeln!(out, "| {} ({}) | {reached} | {mark} |", ranges(&ranks, Some(80)), ranks.len());
    }
    Some(Block::new("table of ranks", 6, out))
}

fn differences(analysis: &Analysis, lang: Lang) -> Option<Block> {
    const MOST: usize = 40;
    let list = compare(&analysis.job);
    if list.is_empty() {
        return None;
    }
    let [title, most, others] = ["Differs between ranks", "most", "others"].map(|t| word(lang, t));
    let mut out = format!("\n### {title}\n\n| | {most} | {others} |\n|---|---|---|\n");
    let value = |(value, ranks): &(String, Vec<u32>)| format!("{} ({})", cell(&shorten(value, 100)), ranges(ranks, Some(40)));
    for fact in list.iter().take(MOST) {
        let (most, others) = fact.values.split_first().map_or_else(Default::default, |(m, o)| (value(m), o.iter().take(4).map(value).collect::<Vec<_>>().join("; ")));
        let _ = writeln!(out, "| {} | {most} | {others} |", cell(&fact.name));
    }
    if list.len() > MOST {
        let _ = writeln!(out, "\n… {} more", list.len() - MOST);
    }
    Some(Block::new("differences between ranks", 30, out))
}

fn runs(analysis: &Analysis, lang: Lang) -> Option<Block> {
    const MOST: usize = 20;
    let list = attempts(&analysis.job);
    if list.is_empty() {
        return None;
    }
    let title = format!("Attempts ({})", list.len());
    let [title, note, begins, ranks, warning] = [title.as_str(), "The findings are those of the last one.", "begins", "ranks", "first warning"].map(|t| word(lang, t));
    let mut out = format!("\n### {title}\n\n{note}\n\n| | {begins} | {ranks} | Init COMPLETE | {warning} |\n|---|---|---|---|---|\n");
    let skip = list.len().saturating_sub(MOST);
    for a in list.iter().skip(skip) {
        let warning = a.warning.as_ref().map_or_else(|| "none".to_owned(), |(_, text)| cell(&shorten(message(text), 120)));
        let _ = writeln!(out, "| {} | {} | {} | {} | {warning} |", a.number, cell(&a.place), a.ranks, a.complete);
    }
    Some(Block::new("attempts", 12, out))
}

/// Notes, and inputs that were not wholly read.
fn missing(analysis: &Analysis, lang: Lang) -> Option<Block> {
    let used = words::headline(analysis).1;
    let notes = analysis.notes.iter().skip(used).take(20).map(|n| prose(n));
    let troubles = analysis.job.streams.iter().filter_map(|s| s.problem.as_ref().map(|p| format!("{}: {}", code(&shorten(&s.path, 200)), prose(p)))).take(20);
    let list: Vec<String> = notes.chain(troubles).map(|n| format!("- {n}\n")).collect();
    (!list.is_empty()).then(|| Block::new("notes", 7, format!("\n### {}\n\n{}", word(lang, "Not in these logs, and other notes"), list.concat())))
}

fn settings(analysis: &Analysis, lang: Lang) -> Option<Block> {
    let list = common_settings(&analysis.job);
    if list.is_empty() {
        return None;
    }
    let title = format!("Settings, equal on all ranks ({})", list.len());
    let lines: Vec<String> = list.iter().take(200).map(|(n, v)| format!("{n}={}", shorten(v, 200))).collect();
    let text = format!("\n<details><summary>{}</summary>\n\n{}\n</details>\n", word(lang, &title), fenced("sh", &lines));
    Some(Block::new("settings", 35, text))
}
