//! One HTML file that needs nothing else: no network, no other file, no script to be read.
//!
//! Text of the logs reaches the page only through [`t`], which shows control characters as escapes; `maud` escapes
//! the markup.

mod findings;
mod ladder;
mod map;
mod squares;
mod tables;
mod timeline;

use super::view::{Board, facts, praise};
use super::{Options, clean, uncoloured, verdict, words};
use crate::lang::{self, Lang, label, word};
use crate::rules::{Analysis, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Nothing may be loaded, whatever a log tries to smuggle in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes the page.
pub fn write(analysis: &Analysis, out: &mut dyn Write, options: &Options) -> io::Result<()> {
    let page = page(analysis, options);
    out.write_all(page.0.as_bytes())?;
    writeln!(out)
}

/// Text of a log or about one.
struct T<'a>(&'a str);

impl Render for T<'_> {
    fn render_to(&self, buffer: &mut String) {
        clean(self.0).as_ref().render_to(buffer);
    }
}

fn t(text: &str) -> T<'_> {
    T(text)
}

/// Prose in which `` `words` `` are code.
fn prose(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    let whole = pieces.len() % 2 == 1;
    html! {
        @if whole {
            @for (index, piece) in pieces.iter().enumerate() {
                @if index % 2 == 1 { code { (t(piece)) } } @else { (t(piece)) }
            }
        } @else { (t(text)) }
    }
}

/// A picture that scrolls sideways where the screen is narrow.
fn picture(class: &str, width: f64, height: f64, label: &str, content: &Markup) -> Markup {
    html! {
        div .scroll {
            svg class=(class) width=(round(width)) height=(round(height)) viewBox=(format!("0 0 {} {}", round(width), round(height))) role="img" aria-label=(label) {
                (content)
            }
        }
    }
}

/// One decimal is as exact as a screen.
fn round(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A rectangle as a path, shorter than an element of its own.
fn block(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("M{} {}h{}v{}h-{}z", round(x), round(y), round(width), round(height), round(width))
}

fn verdict_class(of: Verdict) -> &'static str {
    match of {
        Verdict::Healthy => "healthy",
        Verdict::Degraded => "degraded",
        Verdict::Failed => "failed",
        Verdict::Stalled => "stalled",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn page(analysis: &Analysis, options: &Options) -> Markup {
    let board = Board::new(analysis);
    let lang = options.lang;
    let (title, used) = words::headline(analysis);
    let title = &*word(lang, title);
    let parts = [
        ("findings", "Findings", findings::section(analysis, options)),
        ("job", "Job", Some(fact_list(analysis, &board, lang))),
        ("ladder", "Stages", ladder::section(analysis, &board)),
        ("map", "Connections", map::section(analysis, &board)),
        ("timeline", "Timeline", timeline::section(analysis)),
        ("differences", "Differences between ranks", tables::differences(&analysis.job)),
        ("attempts", "Attempts", tables::attempt_list(&analysis.job)),
        ("notes", "Notes", tables::notes(analysis, used)),
        ("ranks", "All ranks", tables::ranks(analysis, &board)),
        ("settings", "Settings", tables::settings(&analysis.job)),
        ("inputs", "Inputs", tables::inputs(&analysis.job)),
    ];
    let parts: Vec<_> = parts.into_iter().filter_map(|(id, name, body)| Some((id, name, body?))).collect();
    html! {
        (DOCTYPE)
        html lang=(if lang == Lang::Zh { "zh-Hans" } else { "en" }) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(format!("ncclog {}", env!("CARGO_PKG_VERSION")));
                title { (label(lang, verdict(analysis.verdict))) (t(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    (hero(analysis, title, lang))
                    nav { @for (id, name, _) in &parts { a href=(format!("#{id}")) { (word(lang, name)) } } }
                }
                (filter(lang))
                main {
                    @for (id, name, body) in &parts {
                        section id=(id) { h2 { (word(lang, name)) } (body) }
                    }
                }
                footer { "Written by ncclog " (env!("CARGO_PKG_VERSION")) " from the logs alone. It opened no connection and ran no command." }
                div #tip hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// Verdict, proof and the next step: enough for most readers.
fn hero(analysis: &Analysis, title: &str, lang: Lang) -> Markup {
    let root = if analysis.verdict == Verdict::Healthy { None } else { analysis.findings.iter().find(|f| f.is_root()) };
    let proof = root.and_then(|f| f.evidence.first());
    let command = root.and_then(|f| f.fixes.iter().flat_map(|f| &f.commands).next());
    let step = root.and_then(|f| f.fixes.first().map(|f| &f.title).or_else(|| f.verify.first()));
    html! {
        div .hero .(verdict_class(analysis.verdict)) {
            p .verdict { (word(lang, verdict(analysis.verdict))) }
            h1 { (prose(title)) }
            @if let Some(proof) = proof {
                p .proof { b { (word(lang, "Proof")) } span .place { (t(&proof.file)) ":" (proof.line) } code { (t(uncoloured(&proof.text).trim())) } }
            }
            @if command.is_some() || step.is_some() {
                p .next { b { (word(lang, "Next")) } span {
                    @if let Some(step) = step { (prose(step)) " " }
                    @if let Some(command) = command { code { (t(command)) } }
                } }
            }
        }
    }
}

fn fact_list(analysis: &Analysis, board: &Board, lang: Lang) -> Markup {
    let good = praise(analysis, board);
    html! {
        @if !good.is_empty() { ul .good { @for line in &good { li { (t(line)) } } } }
        dl .facts { @for (name, value) in facts(&analysis.job, board) { div { dt { (word(lang, name)) } dd { (t(&lang::fact(lang, name, &value))) } } } }
    }
}

/// Shown by the script only: without it there is nothing to type into.
fn filter(lang: Lang) -> Markup {
    html! {
        form #filter hidden {
            label { (word(lang, "Ranks or host")) input #fr type="search" placeholder="3, 8-15 or node2" autocomplete="off" spellcheck="false"; }
            label { (word(lang, "Text")) input #fq type="search" placeholder=(word(lang, "search findings, lines, ranks")) autocomplete="off" spellcheck="false"; }
            output #fc {}
            button type="reset" { (word(lang, "Show all")) }
        }
    }
}
