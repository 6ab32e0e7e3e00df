//! Framework, launcher, kernel and runtime lines: text → kind and fields, and near misses that mean nothing.

use ncclog::event::{Scope, catalog};
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
    /// The message as it stands behind wrappers and header.
    line: String,
    /// Expected kind; absent if nothing may match.
    kind: Option<String>,
    /// Expected fields; others may be there too.
    #[serde(default)]
    fields: BTreeMap<String, String>,
    /// The message stands behind an NCCL header.
    #[serde(default)]
    nccl: bool,
}

fn files() -> Vec<(String, File)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/framework_messages");
    let mut list: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    list.sort();
    list.iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            (path.file_name().unwrap().to_string_lossy().into_owned(), toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        })
        .collect()
}

#[test]
fn every_line_gives_its_kind_and_fields() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, file) in files() {
        for case in file.case {
            count += 1;
            let found = catalog().find(case.line.as_bytes(), if case.nccl { Scope::Nccl } else { Scope::Any });
            let kind = found.as_ref().map(|n| n.shape.kind);
            if kind != case.kind.as_deref() {
                wrong.push(format!("{name}: {} is {kind:?}, not {:?}", case.line, case.kind));
                continue;
            }
            for (field, want) in &case.fields {
                let got = found.as_ref().and_then(|n| n.fields.get(field)).map(String::from_utf8_lossy);
                if got.as_deref() != Some(want) {
                    wrong.push(format!("{name}: {}: {field} is {got:?}, not {want:?}", case.line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 200, "only {count} examples");
}

/// A text that the format describes: digits for numbers, a word for the rest.
fn sample(format: &str) -> String {
    let text = format.strip_prefix('*').unwrap_or(format);
    let text = text.strip_suffix('$').unwrap_or(text);
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open].replace('~', " "));
        let close = rest[open..].find('}').unwrap() + open;
        let spec = &rest[open + 1..close];
        out.push_str(match spec.rsplit_once(':').map(|(_, k)| k) {
            Some("d" | "x") => "7",
            Some("f") => "7.5",
            Some("i") => "Some",
            _ => "word",
        });
        rest = &rest[close + 1..];
    }
    out.push_str(&rest.replace('~', " "));
    out
}

#[test]
fn every_row_finds_its_own_sample() {
    let ours = [
        "torch",
        "gloo",
        "vllm",
        "sglang",
        "tgi",
        "ray",
        "deepspeed",
        "megatron",
        "lightning",
        "accelerate",
        "horovod",
        "jax",
        "nccl_tests",
        "app",
        "launch",
        "launcher",
        "kernel",
        "rocm",
        "gpu",
        "host",
        "mlperf",
        "train",
    ];
    let mut wrong = Vec::new();
    for shape in catalog().shapes().filter(|s| ours.contains(&s.kind.split('.').next().unwrap())) {
        let text = sample(shape.format);
        let found = catalog().find(text.as_bytes(), Scope::Any).map(|n| n.shape.kind);
        // A broad row may lose its bare sample to a narrower row of its family, never to nothing.
        if found.is_none_or(|kind| kind.split('.').next() != shape.kind.split('.').next()) {
            wrong.push(format!("{}: {text} → {found:?}", shape.format));
        }
        assert!(!shape.meaning.is_empty(), "{} has no meaning", shape.format);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn proof_kinds_exist() {
    use ncclog::event::tables::{NCCL_STAGE_OVER, PROOF_OF_COLLECTIVE};
    for kind in PROOF_OF_COLLECTIVE.iter().chain(NCCL_STAGE_OVER) {
        assert!(catalog().knows(kind), "{kind}");
    }
}
