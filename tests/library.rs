//! The crate as other programs use it: the examples run, and the public items do what they promise.

use ncclog::report::{Format, Options, write};
use ncclog::{Analysis, Event, Log, Severity, Verdict, cause, causes};
use std::process::Command;

fn example(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--offline", "--example", name, "--"]).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_examples_run() {
    let found = example("findings", &["fixtures/tcp-container-without-infiniband"]);
    assert!(found.starts_with("Degraded\nWarning tcp-fallback (Certain): "), "{found}");
    assert!(found.contains("pods.log:21\n"), "{found}");
    let counts = example("warnings", &["fixtures/memlock-limit-one-node/rank2.log"]);
    assert!(counts.contains("ib."), "{counts}");
}

#[test]
fn paths_give_the_same_as_bytes() {
    let folder = "fixtures/peer-crash-sigkill";
    let of_paths = Analysis::from_paths([format!("{folder}/*.log")]).expect("all can be read");
    assert_eq!(of_paths.verdict, Verdict::Failed);
    let paths: Vec<String> = of_paths.job.streams.iter().map(|s| s.path.clone()).collect();
    let texts: Vec<Vec<u8>> = paths.iter().map(|p| std::fs::read(p).expect("a fixture")).collect();
    let logs: Vec<(&str, &[u8])> = paths.iter().map(String::as_str).zip(texts.iter().map(Vec::as_slice)).collect();
    let json = |analysis: &Analysis| {
        let mut out = Vec::new();
        write(Format::Json, analysis, &mut out, &Options::default()).expect("a vector takes all");
        String::from_utf8(out).expect("UTF-8")
    };
    assert_eq!(json(&of_paths), json(&Analysis::from_bytes(&logs)));
}

#[test]
fn what_cannot_be_read_is_told_beside_the_rest() {
    let error = Analysis::from_paths(["fixtures/tcp-cloud-vm", "no/such.log"]).expect_err("one is missing");
    assert_eq!(error.problems.len(), 1);
    assert!(error.to_string().starts_with("no/such.log: "), "{error}");
    assert!(error.analysis.findings.iter().any(|f| f.id == "tcp-fallback" && f.severity != Severity::Error));
}

#[test]
fn events_are_the_ones_that_the_binary_prints() {
    let path = "fixtures/tcp-container-without-infiniband/pods.log";
    let log = Log::new(std::fs::read(path).expect("a fixture"));
    let here: Vec<(u64, u64, String)> = log.events().map(|e| (e.line, e.offset, e.event.kind().to_owned())).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_ncclog")).args(["events", path]).output().expect("it runs");
    let there: Vec<(u64, u64, String)> = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (event["line"].as_u64().unwrap_or(0), event["offset"].as_u64().unwrap_or(0), event["kind"].as_str().unwrap_or_default().to_owned())
        })
        .collect();
    assert!(here.len() > 100);
    assert_eq!(here, there);
    assert!(log.events().any(|e| matches!(e.event, Event::Channel(_))));
}

#[test]
fn causes_are_found_by_name() {
    assert!(causes().count() > 30);
    assert_eq!(cause("tcp-fallback").map(|c| c.id), Some("tcp-fallback"));
    assert!(cause("no-such").is_none());
}
