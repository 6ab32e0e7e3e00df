//! One example for every shape of header and wrapper: the text in, the records out.
//!
//! A field that an example does not name must be empty, so each example says all that its record holds.

use bumpalo::Bump;
use ncclog::line::{RankHint, Record, Time, records};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    example: Vec<Example>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    name: String,
    text: String,
    records: Vec<Expected>,
}

#[expect(clippy::struct_excessive_bools, reason = "one a flag of the record")]
/// What is expected of one record. Times are `Clock micros`, ranks `global N` or `local N`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expected {
    msg: String,
    line: u32,
    level: String,
    host: String,
    pid: u32,
    tid: u32,
    dev: Option<u16>,
    file: String,
    file_line: u32,
    func: String,
    time: String,
    rccl: bool,
    rank: String,
    wrap_pid: Option<u32>,
    wrap_host: String,
    label: String,
    wrap_time: String,
    repeated: u32,
    torn_start: bool,
    torn_end: bool,
    follows_nccl: bool,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn time(time: Option<Time>) -> String {
    time.map_or_else(String::new, |t| format!("{:?} {}", t.clock, t.micros))
}

fn seen(record: &Record<'_>) -> Expected {
    let wrap = record.wrap;
    let rank = match wrap.rank {
        Some(RankHint::Global(n)) => format!("global {n}"),
        Some(RankHint::Local(n)) => format!("local {n}"),
        None => String::new(),
    };
    let mut seen = Expected {
        msg: text(record.msg),
        line: record.line,
        rank,
        wrap_pid: wrap.pid,
        wrap_host: text(wrap.host),
        label: text(wrap.label),
        wrap_time: time(wrap.time),
        repeated: wrap.repeated,
        torn_start: record.torn_start,
        torn_end: record.torn_end,
        // The first line of a block always may follow something.
        follows_nccl: record.follows_nccl && record.line > 0,
        ..Expected::default()
    };
    if let Some(header) = record.header {
        seen.level = format!("{:?}", header.level);
        seen.host = text(header.host);
        seen.pid = header.pid;
        seen.tid = header.tid;
        seen.dev = header.dev;
        seen.file = text(header.file);
        seen.file_line = header.file_line;
        seen.func = text(header.func);
        seen.time = time(header.time);
        seen.rccl = header.rccl;
    }
    seen
}

#[test]
fn every_example_reads_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lines");
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file: File = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for example in file.example {
            count += 1;
            let arena = Bump::new();
            let mut got = Vec::new();
            records(example.text.as_bytes(), &arena, |r| got.push(seen(&r)));
            if got != example.records {
                wrong.push(format!("{}\n  expected {:#?}\n  read {got:#?}", example.name, example.records));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 90, "only {count} examples were found");
}
