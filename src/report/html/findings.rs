//! Findings with their proof in its surroundings, and what to do.

use super::super::context::Context;
use super::super::view::{confidence, severity, terms};
use super::super::{Options, heads, is_sentence, plural, ranges, uncoloured};
use super::{prose, t};
use crate::lang::{Lang, label, word};
use crate::rules::{Analysis, Evidence, Finding, Fix};
use maud::{Markup, html};

/// Most lines of evidence shown for one finding.
const MAX_EVIDENCE: usize = 12;

/// Most consequences listed under one finding.
const MAX_VICTIMS: usize = 40;

/// Findings beyond this many show no surroundings.
const MAX_IN_CONTEXT: usize = 40;

/// The section, if there is a finding.
pub fn section(analysis: &Analysis, options: &Options) -> Option<Markup> {
    let findings = &analysis.findings;
    let heads = heads(findings);
    let roots: Vec<usize> = (0..findings.len()).filter(|i| heads[*i] == *i).collect();
    let victims = |head: usize| (0..findings.len()).filter(|i| *i != head && heads[*i] == head).map(|i| &findings[i]).collect::<Vec<_>>();
    (!roots.is_empty()).then(|| {
        html! {
            @for (number, root) in roots.iter().enumerate() {
                (finding(&findings[*root], number + 1, &victims(*root), options))
            }
        }
    })
}

fn finding(finding: &Finding, number: usize, victims: &[&Finding], options: &Options) -> Markup {
    let (lang, context) = (options.lang, options.context.filter(|_| number <= MAX_IN_CONTEXT));
    let ranks = (!finding.ranks.is_empty()).then(|| ranges(&finding.ranks, None));
    html! {
        article .finding .(severity(finding.severity)) id=(format!("f{number}")) data-r=[ranks] data-q {
            p .tags {
                span .(severity(finding.severity)) { (word(lang, severity(finding.severity))) }
                span { (word(lang, confidence(finding.confidence))) }
                code { (finding.id) }
            }
            h3 { (number) ". " (prose(&finding.title)) }
            (concerned(finding, lang))
            @if !finding.why.is_empty() { p { (prose(&finding.why)) } }
            @if !finding.evidence.is_empty() {
                h4 { (word(lang, "Evidence")) }
                @for line in finding.evidence.iter().take(MAX_EVIDENCE) { (evidence(line, context)) }
                @if let Some(more @ 1..) = finding.evidence.len().checked_sub(MAX_EVIDENCE) { p .quiet { (word(lang, &format!("… {} in --format json", plural(more as u64, "more line")))) } }
            }
            @if !finding.fixes.is_empty() {
                h4 { (word(lang, if finding.fixes.len() == 1 { "Fix" } else { "Fixes, best first" })) }
                @for one in &finding.fixes { (fix(one, lang)) }
            }
            @if !finding.avoid.is_empty() { h4 { (word(lang, "Avoid")) } ul { @for text in &finding.avoid { li { (prose(text)) } } } }
            @if !finding.verify.is_empty() { h4 { (word(lang, "Verify")) } ul { @for text in &finding.verify { li { (sentence_or_command(text)) } } } }
            @if finding.path.len() > 1 { p .path { @for (i, step) in finding.path.iter().enumerate() { @if i > 0 { " › " } span { (step) } } } }
            (consequences(victims, lang))
        }
    }
}

fn concerned(finding: &Finding, lang: Lang) -> Markup {
    let shown = 12;
    html! {
        @if !finding.ranks.is_empty() || !finding.hosts.is_empty() {
            p .quiet {
                @if !finding.ranks.is_empty() { @if finding.ranks.len() == 1 { "rank " } @else { "ranks " } (ranges(&finding.ranks, Some(120))) }
                @if !finding.ranks.is_empty() && !finding.hosts.is_empty() { " · " }
                @for (i, host) in finding.hosts.iter().take(shown).enumerate() { @if i > 0 { ", " } (t(host)) }
                @if finding.hosts.len() > shown { (word(lang, &format!(" and {} more hosts", finding.hosts.len() - shown))) }
            }
        }
    }
}

fn evidence(line: &Evidence, context: Option<&dyn Context>) -> Markup {
    let around = context.map_or(Err(""), |c| c.around(line));
    html! {
        figure data-r=[line.rank] {
            figcaption {
                span .place { (t(&line.file)) ":" (line.line) }
                @if let Some(rank) = line.rank { " rank " (rank) }
                @if let Err(why) = around { @if !why.is_empty() { span .quiet { " surroundings left out: " (why) } } }
            }
            pre {
                @if let Ok(around) = &around { @for l in &around.before { span .dim { (t(&uncoloured(l))) } "\n" } }
                mark { (t(uncoloured(&line.text).trim_end())) }
                @if let Ok(around) = &around { @for l in &around.after { "\n" span .dim { (t(&uncoloured(l))) } } }
            }
        }
    }
}

fn fix(fix: &Fix, lang: Lang) -> Markup {
    let terms: Vec<(&str, &str)> = terms(fix).collect();
    html! {
        div .fix {
            p { b { (prose(&fix.title)) } }
            @if !fix.when.is_empty() { p { (label(lang, "When")) (prose(&fix.when)) } }
            @if !fix.commands.is_empty() { pre .commands { @for (i, c) in fix.commands.iter().enumerate() { @if i > 0 { "\n" } (t(c)) } } }
            @if !terms.is_empty() {
                p .quiet { @for (i, (name, value)) in terms.iter().enumerate() { @if i > 0 { " · " } (label(lang, name)) (prose(&word(lang, value))) } }
            }
        }
    }
}

/// A sentence is prose, anything else is a command.
fn sentence_or_command(text: &str) -> Markup {
    if is_sentence(text) {
        prose(text)
    } else {
        html! { code { (t(text)) } }
    }
}

fn consequences(victims: &[&Finding], lang: Lang) -> Markup {
    html! {
        @if !victims.is_empty() {
            details {
                summary { (word(lang, &format!("Led to {}", plural(victims.len() as u64, "consequence")))) }
                ul {
                    @for victim in victims.iter().take(MAX_VICTIMS) { li { code { (victim.id) } " " (prose(&victim.title)) } }
                    @if victims.len() > MAX_VICTIMS { li { (word(lang, &format!("… {} more", victims.len() - MAX_VICTIMS))) } }
                }
            }
        }
    }
}
