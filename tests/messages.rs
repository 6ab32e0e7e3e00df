//! Library messages over many versions: text → kind and fields, and harmless texts that mean nothing.

use bumpalo::Bump;
use ncclog::event::{Event, Scope, catalog, parse};
use ncclog::line::records;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The message behind the header.
    line: String,
    /// Expected kind; absent if no row may match.
    kind: Option<String>,
    /// The library prints it as a warning.
    #[serde(default)]
    warn: bool,
    /// Expected fields; others may be there too.
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

/// The kind and fields that a whole line gives.
fn read(case: &Case) -> (Option<&'static str>, BTreeMap<String, String>) {
    let level = if case.warn { "misc/some.cc:77 NCCL WARN" } else { "NCCL INFO" };
    let line = format!("node01:4242:4260 [0] {level} {}\n", case.line);
    let arena = Bump::new();
    let mut found = (None, BTreeMap::new());
    records(line.as_bytes(), &arena, |record| {
        if let Some(Event::Note(note)) = parse(&record) {
            let fields = note.fields.iter().map(|(name, value, _)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()));
            found = (Some(note.shape.kind), fields.collect());
        }
    });
    found
}

#[test]
fn every_message_gives_its_kind_and_fields() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file: File = toml::from_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        for case in &file.case {
            count += 1;
            let (kind, fields) = read(case);
            if kind != case.kind.as_deref() {
                wrong.push(format!("{} is {kind:?}, not {:?}", case.line, case.kind));
                continue;
            }
            for (name, want) in case.fields.iter().filter(|(name, want)| fields.get(*name) != Some(want)) {
                wrong.push(format!("{}: {name} is {:?}, not {want:?}", case.line, fields.get(name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 90, "only {count} messages");
}

/// A text that the format describes: digits for numbers, a word for the rest.
fn sample(format: &str) -> String {
    let text = format.trim_start_matches('*').trim_end_matches('$');
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('{') {
        let (spec, after) = tail.split_once('}').unwrap();
        out.push_str(&before.replace('~', " "));
        out.push_str(match spec.rsplit_once(':').map(|(_, kind)| kind) {
            Some("d" | "x") => "7",
            Some("f") => "7.5",
            _ => "word",
        });
        rest = after;
    }
    out + &rest.replace('~', " ")
}

#[test]
fn every_row_finds_its_own_sample() {
    let families = [
        "init",
        "p2p",
        "abort",
        "env",
        "nvml",
        "api",
        "tuning",
        "version",
        "arch",
        "bootstrap",
        "ras",
        "socket",
        "net",
        "system",
        "transport",
        "topo",
        "ib",
        "gdr",
        "benign",
        "plugin",
        "shm",
        "nvls",
        "mnnvl",
        "proxy",
        "cuda",
        "collective",
        "rccl",
    ];
    let mut wrong = Vec::new();
    let mut rows = 0;
    for shape in catalog().shapes().filter(|s| families.contains(&s.kind.split('.').next().unwrap())) {
        rows += 1;
        let text = sample(shape.format);
        let found = catalog().find(text.as_bytes(), Scope::Nccl).map(|n| n.shape.kind);
        if found != Some(shape.kind) {
            wrong.push(format!("{}: {}: {text} → {found:?}", shape.kind, shape.format));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 250, "only {rows} rows");
}
