//! `ncclog explain --line`: what the tool reads in one log line.

use crate::digest::{Family, family_of};
use crate::event::{Collective, Event, Init, Note, Phase, parse};
use crate::line::{Level, RankHint, Record, records};
use crate::report::clean;
use anstyle::Style;
use bumpalo::Bump;
use std::io::{self, Write};

/// What is said of an event, whatever its type.
#[derive(Default)]
struct Card {
    kind: String,
    meaning: String,
    format: String,
    versions: String,
    source: String,
    fields: Vec<(&'static str, String)>,
    /// What the line tells of a host, together with those around it.
    facts: String,
}

/// Explains every record of `text`.
pub fn write(text: &[u8], out: &mut dyn Write, color: bool) -> io::Result<()> {
    let arena = Bump::new();
    let mut result = Ok(());
    let mut count = 0;
    records(text, &arena, |record| {
        if result.is_ok() {
            result = explain(&record, count, out, color);
            count += 1;
        }
    });
    result?;
    if count == 0 {
        writeln!(out, "There is no text in this line.")?;
    }
    Ok(())
}

fn explain(record: &Record<'_>, index: usize, out: &mut dyn Write, color: bool) -> io::Result<()> {
    let bold = if color { Style::new().bold() } else { Style::new() };
    if index > 0 {
        writeln!(out)?;
    }
    let fact = if record.header.is_none() { family_of(&lossy(record.text)).or_else(|| family_of(&lossy(record.msg))) } else { None };
    let mut card = parse(record).map_or_else(|| fact.map_or_else(unknown, fact_card), |event| card(&event));
    card.facts = fact.map_or_else(String::new, |f| f.reads.to_owned());
    let fields: Vec<String> = card.fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut rows = vec![("event", card.kind), ("meaning", card.meaning), ("facts", card.facts), ("versions", card.versions), ("source", card.source), ("format", card.format)];
    rows.extend(fields.into_iter().map(|f| ("field", f)));
    rows.push(("printed by", origin(record)));
    rows.push(("prefixes", prefixes(record)));
    rows.push(("message", lossy(record.msg)));
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{bold}{name:<10}{bold:#}  {}", clean(value))?;
    }
    Ok(())
}

fn unknown() -> Card {
    Card { kind: "none known".into(), meaning: "No message in the tables fits. It plays no part in an analysis.".into(), ..Card::default() }
}

fn fact_card(family: &'static Family) -> Card {
    let meaning = "A line of a command's output: a fact of a host, where the lines before it tell what it is of.";
    Card { kind: "fact of a host".into(), meaning: meaning.into(), source: family.commands.join(", "), ..Card::default() }
}

fn card(event: &Event<'_>) -> Card {
    match event {
        Event::Note(note) => note_card(note),
        Event::Version(v) => typed("version", "The library's own version line.", "src/init.cc", vec![("library", format!("{:?}", v.library)), ("version", lossy(v.text))]),
        Event::Setting(s) => {
            let meaning = if s.in_force { "A setting that the library says it uses." } else { "A setting that a script exports; whether the library saw it is not said." };
            typed("setting", meaning, "src/misc/param.cc", vec![("name", lossy(s.name)), ("value", lossy(s.value))])
        }
        Event::Init(init) => init_card(init),
        Event::Channel(c) => typed(
            "channel",
            "The transport of one connection between two ranks.",
            "src/transport/",
            vec![
                ("channel", c.channel.to_string()),
                ("from", c.from.to_string()),
                ("to", c.to.to_string()),
                ("direction", format!("{:?}", c.direction).to_lowercase()),
                ("via", lossy(c.text)),
                ("gdr", c.gdr.to_string()),
            ],
        ),
        Event::Collective(call) => collective_card(call),
        Event::UnknownWarn => Card { kind: "unknown warning".into(), meaning: "The library warns, but no row of the tables describes this text.".into(), ..Card::default() },
    }
}

fn typed(kind: &str, meaning: &str, source: &str, fields: Vec<(&'static str, String)>) -> Card {
    Card { kind: kind.into(), meaning: meaning.into(), source: source.into(), fields, ..Card::default() }
}

fn note_card(note: &Note<'_>) -> Card {
    let shape = note.shape;
    let versions = match (shape.since, shape.until) {
        ("", "") => String::new(),
        (since, "") => format!("{since} and later"),
        ("", until) => format!("up to {until}"),
        (since, until) => format!("{since} to {until}"),
    };
    Card {
        kind: shape.kind.into(),
        meaning: shape.meaning.into(),
        format: shape.format.into(),
        versions,
        source: shape.source.into(),
        fields: note.fields.iter().map(|(name, value, _)| (name, lossy(value))).collect(),
        facts: String::new(),
    }
}

fn init_card(init: &Init<'_>) -> Card {
    let (kind, meaning) = match init.phase {
        Phase::Start => ("init.start", "A rank starts to initialise a communicator."),
        Phase::Named => ("init.named", "A rank names itself and the size of its communicator (up to 2.3)."),
        Phase::Complete => ("init.complete", "A rank has initialised its communicator."),
        Phase::Layout => ("init.layout", "How many nodes and local ranks the communicator has."),
        Phase::Destroy => ("init.destroy", "A rank ended its communicator in order."),
        Phase::Abort => ("init.abort", "A rank gave its communicator up."),
    };
    let fields = [
        ("comm", Some(format!("{:#x}", init.comm))),
        ("rank", init.rank.map(|n| n.to_string())),
        ("nranks", init.nranks.map(|n| n.to_string())),
        ("device", init.cuda_dev.map(|n| n.to_string())),
        ("nnodes", init.nnodes.map(|n| n.to_string())),
        ("commId", init.comm_id.map(|n| format!("{n:#x}"))),
    ];
    typed(kind, meaning, "src/init.cc", fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

fn collective_card(call: &Collective) -> Card {
    let fields = vec![
        ("function", call.function.name().to_owned()),
        ("count", call.count.to_string()),
        ("datatype", call.datatype.to_string()),
        ("op", call.op.to_string()),
        ("root", call.root.to_string()),
    ];
    typed("collective", "A rank enqueued this operation. opCount is no counter of calls.", "src/enqueue.cc", fields)
}

/// What header and wrappers say of the line's origin.
fn origin(record: &Record<'_>) -> String {
    let Some(header) = &record.header else { return "no NCCL header".to_owned() };
    let level = match header.level {
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "FATAL ERROR",
        Level::Trace => "TRACE",
        Level::Call => "CALL",
        Level::Version => "VERSION",
        Level::Other => "another level",
    };
    let mut parts = Vec::new();
    if !header.host.is_empty() {
        parts.push(format!("host {}", lossy(header.host)));
    }
    for (name, number) in [("pid", header.pid), ("thread", header.tid)] {
        if number > 0 {
            parts.push(format!("{name} {number}"));
        }
    }
    parts.extend(header.dev.map(|dev| format!("device {dev}")));
    parts.push(level.to_owned());
    if !header.file.is_empty() {
        parts.push(format!("{}:{}", lossy(header.file), header.file_line));
    }
    parts.join(", ")
}

/// What stands in front of the library's own text.
fn prefixes(record: &Record<'_>) -> String {
    let wrap = &record.wrap;
    let mut parts = Vec::new();
    match wrap.rank {
        Some(RankHint::Global(rank)) => parts.push(format!("rank {rank}")),
        Some(RankHint::Local(rank)) => parts.push(format!("local rank {rank}")),
        None => {}
    }
    parts.extend(wrap.pid.map(|pid| format!("pid {pid}")));
    for (name, text) in [("host", wrap.host), ("source", wrap.label)] {
        if !text.is_empty() {
            parts.push(format!("{name} {}", lossy(text)));
        }
    }
    parts.join(", ")
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let mut out = Vec::new();
        write(line.as_bytes(), &mut out, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_version_line() {
        let text = shown("node1:100:101 [0] NCCL INFO NCCL version 2.21.5+cuda12.4");
        assert!(text.contains("event       version\n") && text.contains("version = 2.21.5+cuda12.4") && text.contains("host node1, pid 100"), "{text}");
    }

    #[test]
    fn prefixes_are_told() {
        let text = shown("[rank3]: node1:100:101 [0] NCCL INFO NCCL version 2.21.5+cuda12.4");
        assert!(text.contains("prefixes    rank 3\n") && text.contains("event       version\n"), "{text}");
    }

    #[test]
    fn facts_of_hosts() {
        let text = shown("link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0");
        assert!(text.contains("facts ") && text.contains("GID table"), "{text}");
        let text = shown("   active_width:   4X (2)");
        assert!(text.contains("fact of a host") && text.contains("ibv_devinfo"), "{text}");
    }

    #[test]
    fn unknown_text_and_no_text() {
        let text = shown("hello \x1b[31mworld");
        assert!(text.contains("none known") && text.contains("no NCCL header") && !text.contains('\x1b'), "{text}");
        assert!(shown("").contains("no text"));
    }
}
