//! Writes a comparison: text for people, JSON, Markdown.

use super::{Diff, Difference, SCHEMA, Side, Topic, Value, Weight};
use crate::report::{clean, escape, json, plural, verdict, wrap};
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// Formats of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs, by the schema that `ncclog schema diff` prints.
    Json,
    /// For a bug report.
    Markdown,
}

/// Longest value that is shown, in characters.
const MAX_VALUE: usize = 160;

/// Most values of one side that are shown.
const MAX_VALUES: usize = 4;

/// Most facts that are listed as the same.
const MAX_SAME: usize = 40;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    tool: json::Tool,
    #[serde(flatten)]
    diff: &'a Diff,
}

/// Writes it. `width` and `color` are of the text.
pub fn write(format: Format, diff: &Diff, out: &mut dyn Write, width: usize, color: bool) -> io::Result<()> {
    match format {
        Format::Text => Text { out, width: width.max(40), color }.write(diff),
        Format::Markdown => markdown(diff, out),
        Format::Json => json::pretty(&Document { schema: SCHEMA, tool: json::Tool::SELF, diff }, out),
    }
}

fn topic(topic: Topic) -> &'static str {
    match topic {
        Topic::Finding => "finding",
        Topic::Version => "version",
        Topic::Setting => "setting",
        Topic::Network => "network",
        Topic::Interface => "interface",
        Topic::Hca => "RDMA",
        Topic::Gdr => "GPU Direct",
        Topic::Transport => "connections",
        Topic::Channels => "channels",
        Topic::Algorithm => "algorithm",
        Topic::Gpu => "GPU",
        Topic::Host => "host",
        Topic::Size => "size",
        Topic::Stage => "stage",
    }
}

fn heading(weight: Weight) -> &'static str {
    match weight {
        Weight::Likely => "Look here first",
        Weight::Possible => "May matter",
        Weight::Minor => "Hardly matters",
    }
}

/// The values of one side in a line.
fn shown(values: &[Value], side: &Side, topic: Topic) -> String {
    if values.is_empty() {
        return match topic {
            Topic::Setting => "not set, or not printed",
            Topic::Finding | Topic::Transport | Topic::Hca => "none",
            _ => "not printed",
        }
        .to_owned();
    }
    // Where every node has all of them, their names say nothing.
    let everywhere = values.iter().all(|v| v.nodes.len() == side.nodes.len() || v.nodes.is_empty());
    let one = |v: &Value| {
        let value = crop(&v.value);
        let names: Vec<&str> = v.nodes.iter().filter_map(|n| side.nodes.get(*n)).map(String::as_str).collect();
        match names.as_slice() {
            [] => value,
            _ if everywhere => value,
            [a] => format!("{value} on {a}"),
            [a, b] => format!("{value} on {a} and {b}"),
            [a, rest @ ..] => format!("{value} on {a} and {} more", rest.len()),
        }
    };
    let mut list: Vec<String> = values.iter().take(MAX_VALUES).map(one).collect();
    if values.len() > MAX_VALUES {
        list.push(format!("and {} more", values.len() - MAX_VALUES));
    }
    list.join("; ")
}

fn crop(text: &str) -> String {
    let text = if text.is_empty() { "(empty)" } else { text };
    if text.chars().count() <= MAX_VALUE { text.to_owned() } else { text.chars().take(MAX_VALUE - 1).chain(['…']).collect() }
}

fn about(side: &Side) -> String {
    let mut parts = vec![verdict(side.verdict).to_lowercase()];
    parts.extend(side.nranks.map(|n| plural(n.into(), "rank")));
    parts.extend(side.nnodes.map(|n| plural(n.into(), "node")));
    if !side.versions.is_empty() {
        parts.push(side.versions.join(", "));
    }
    parts.join(", ")
}

/// The sentence that heads every format.
fn summary(diff: &Diff) -> String {
    let matter = diff.differences.iter().filter(|d| d.weight <= Weight::Possible).count() as u64;
    let minor = diff.differences.len() as u64 - matter;
    match (matter, minor) {
        (0, 0) => "The runs do not differ in anything that their logs show.".to_owned(),
        (0, n) => format!("The runs differ in nothing that matters, only in {}.", plural(n, "small thing")),
        (n, _) => format!("The runs differ in {} that may explain the failure.", plural(n, "thing")),
    }
}

fn title(d: &Difference) -> String {
    let (name, topic) = (&d.name, topic(d.topic));
    if d.topic == Topic::Setting || name.contains(topic) { name.clone() } else { format!("{topic} · {name}") }
}

struct Text<'a> {
    out: &'a mut dyn Write,
    width: usize,
    color: bool,
}

impl Text<'_> {
    fn line(&mut self, style: &str, first: &str, text: &str) -> io::Result<()> {
        let indent = " ".repeat(first.chars().count());
        for (i, row) in wrap(&clean(text), self.width.saturating_sub(indent.len())).into_iter().enumerate() {
            let (on, off) = if self.color && !style.is_empty() { (format!("\x1b[{style}m"), "\x1b[0m") } else { (String::new(), "") };
            writeln!(self.out, "{}{on}{row}{off}", if i == 0 { first } else { &indent })?;
        }
        Ok(())
    }

    fn write(&mut self, diff: &Diff) -> io::Result<()> {
        self.line("1", "", &summary(diff))?;
        writeln!(self.out)?;
        self.line("", "good: ", &format!("{} ({})", diff.good.name, about(&diff.good)))?;
        self.line("", "bad:  ", &format!("{} ({})", diff.bad.name, about(&diff.bad)))?;
        let mut number = 0;
        for weight in [Weight::Likely, Weight::Possible, Weight::Minor] {
            let list: Vec<&Difference> = diff.differences.iter().filter(|d| d.weight == weight).collect();
            if list.is_empty() {
                continue;
            }
            writeln!(self.out)?;
            self.line("1", "", heading(weight))?;
            for d in list {
                number += 1;
                self.difference(number, d, diff)?;
            }
        }
        self.rest(diff)
    }

    fn difference(&mut self, number: usize, d: &Difference, diff: &Diff) -> io::Result<()> {
        let style = match d.weight {
            Weight::Likely => "31",
            Weight::Possible => "33",
            Weight::Minor => "",
        };
        self.line(style, &format!("{number:2}. "), &title(d))?;
        if d.topic == Topic::Finding {
            let which = if d.bad.is_empty() { "gone: " } else { "new: " };
            return self.line("", "    ", &format!("{which}{}", d.why));
        }
        self.line("", "    good: ", &shown(&d.good, &diff.good, d.topic))?;
        self.line("", "    bad:  ", &shown(&d.bad, &diff.bad, d.topic))?;
        self.line("2", "    ", &d.why)
    }

    fn rest(&mut self, diff: &Diff) -> io::Result<()> {
        if !diff.same.is_empty() {
            writeln!(self.out)?;
            self.line("", "The same in both: ", &same(diff))?;
        }
        if !diff.notes.is_empty() {
            writeln!(self.out)?;
            self.line("1", "", "Notes")?;
            for note in &diff.notes {
                self.line("", "- ", note)?;
            }
        }
        Ok(())
    }
}

fn same(diff: &Diff) -> String {
    let shown: Vec<&str> = diff.same.iter().map(String::as_str).take(MAX_SAME).collect();
    shown.join(", ") + &if diff.same.len() > MAX_SAME { format!(" and {} more", diff.same.len() - MAX_SAME) } else { ".".to_owned() }
}

fn markdown(diff: &Diff, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", escape::plain(&summary(diff)))?;
    writeln!(out, "| | good | bad |\n|---|---|---|")?;
    writeln!(out, "| run | {} | {} |", escape::cell(&diff.good.name), escape::cell(&diff.bad.name))?;
    writeln!(out, "| | {} | {} |", escape::plain(&about(&diff.good)), escape::plain(&about(&diff.bad)))?;
    for weight in [Weight::Likely, Weight::Possible, Weight::Minor] {
        let list: Vec<&Difference> = diff.differences.iter().filter(|d| d.weight == weight).collect();
        if list.is_empty() {
            continue;
        }
        writeln!(out, "\n## {}\n\n| what | good | bad | why |\n|---|---|---|---|", heading(weight))?;
        for d in list {
            let cell = |values: &[Value], side: &Side| escape::plain(&shown(values, side, d.topic));
            writeln!(out, "| {} | {} | {} | {} |", escape::plain(&title(d)), cell(&d.good, &diff.good), cell(&d.bad, &diff.bad), escape::prose(&d.why))?;
        }
    }
    if !diff.same.is_empty() {
        writeln!(out, "\nThe same in both: {}", escape::plain(&same(diff)))?;
    }
    if !diff.notes.is_empty() {
        writeln!(out)?;
    }
    diff.notes.iter().try_for_each(|n| writeln!(out, "- {}", escape::plain(n)))
}
