//! `ncclog diff`: what changed between a run that worked and one that does not.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn diff(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("ncclog").expect("the binary").arg("diff").args(args).assert()
}

fn out(done: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}

fn stderr(done: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&done.get_output().stderr).into_owned()
}

/// What a run is made of.
struct Run<'a> {
    hosts: [&'a str; 2],
    version: &'a str,
    net: &'a str,
    env: &'a [(&'a str, &'a str)],
    complete: bool,
}

const GOOD: Run<'_> = Run { hosts: ["node1", "node2"], version: "2.27.7+cuda12.9", net: "IB", env: &[("NCCL_DEBUG", "INFO"), ("NCCL_IB_HCA", "mlx5")], complete: true };

/// Writes the logs of two ranks on two nodes.
fn logs(dir: &TempDir, name: &str, run: &Run<'_>) -> String {
    let folder = dir.path().join(name);
    fs::create_dir_all(&folder).expect("folder");
    for (rank, host) in run.hosts.iter().enumerate() {
        let head = format!("{host}:{}:{} [0] NCCL INFO", 40 + rank, 40 + rank);
        let mut text = format!("{head} Bootstrap: Using eth0:10.0.0.{}<0>\n{head} NCCL version {}\n", rank + 1, run.version);
        for (name, value) in run.env {
            text += &format!("{head} {name} set by environment to {value}.\n");
        }
        if run.net == "IB" {
            text += &format!("{head} NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.{}<0>\n", rank + 1);
        } else {
            text += &format!("{head} NET/Socket : Using [0]eth0:10.0.0.{}<0>\n", rank + 1);
        }
        let life = format!("rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xfeed5eed00c0ffee");
        text += &format!("{head} Using network {}\n{head} ncclCommInitRank comm 0x7f1 {life} - Init START\n", run.net);
        text += &format!("{head} comm 0x7f1 rank {rank} nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n");
        for channel in 0..2 {
            text += &format!("{head} Channel {channel:02}/0 : {rank}[0] -> {}[0] [send] via NET/{}/0\n", 1 - rank, run.net);
        }
        if run.complete {
            text += &format!("{head} Connected all rings\n{head} ncclCommInitRank comm 0x7f1 {life} - Init COMPLETE\n");
        }
        fs::write(folder.join(format!("rank{rank}.log")), text).expect("writable");
    }
    folder.display().to_string()
}

fn json(good: &str, bad: &str, code: i32) -> Value {
    let value: Value = serde_json::from_str(&out(&diff(&[good, bad, "--no-config", "--format", "json"]).code(code))).expect("JSON");
    let schema: Value = serde_json::from_str(include_str!("../src/diff/diff.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    value
}

fn names(json: &Value, weight: &str) -> Vec<String> {
    let list = json["differences"].as_array().expect("a list").iter().filter(|d| d["weight"] == weight);
    list.map(|d| d["name"].as_str().expect("a name").to_owned()).collect()
}

fn named<'a>(json: &'a Value, name: &str) -> &'a Value {
    json["differences"].as_array().expect("a list").iter().find(|d| d["name"] == name).unwrap_or_else(|| panic!("{name}: {json}"))
}

#[test]
fn equal_runs_do_not_differ() {
    let dir = TempDir::new().expect("a temporary folder");
    let (a, b) = (logs(&dir, "a", &GOOD), logs(&dir, "b", &GOOD));
    let same = json(&a, &b, 0);
    assert_eq!(same["differences"].as_array().map(Vec::len), Some(0), "{same}");
    assert!(same["same"].to_string().contains("NCCL_IB_HCA"));
    assert!(out(&diff(&[&a, &a]).code(0)).starts_with("The runs do not differ in anything"));
}

#[test]
fn the_switch_that_took_rdma_away_comes_first() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { net: "Socket", env: &[("NCCL_DEBUG", "INFO"), ("NCCL_IB_HCA", "mlx5"), ("NCCL_IB_DISABLE", "1")], ..GOOD });
    let json = json(&good, &bad, 1);
    let likely = names(&json, "likely");
    assert!(likely[..3].contains(&"NCCL_IB_DISABLE".to_owned()) && likely.contains(&"network".to_owned()), "{likely:?}");
    let switch = named(&json, "NCCL_IB_DISABLE");
    assert_eq!((switch["good"].as_array().map(Vec::len), &switch["bad"][0]["value"]), (Some(0), &"1".into()));
    assert_eq!(switch["bad"][0]["nodes"], serde_json::json!([0, 1]));
    assert!(switch["why"].as_str().is_some_and(|w| w.contains("tcp-fallback")), "{switch}");
    assert_eq!(named(&json, "tcp-fallback")["topic"], "finding");
    assert!(!json["differences"].to_string().contains("NCCL_IB_HCA"), "what is equal is left out");
    let text = out(&diff(&[&good, &bad, "--no-config"]).code(1));
    assert!(text.contains("Look here first") && text.contains("good: not set, or not printed") && text.contains("bad:  1\n"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'));
    // The other way round RDMA came back: nothing is wrong in the second run, and that is said.
    let back = out(&diff(&[&bad, &good, "--no-config"]).code(1));
    assert!(back.contains("Nothing is wrong in the logs") && back.contains("gone: "), "{back}");
}

#[test]
fn one_node_that_differs_is_named_by_its_place() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { hosts: ["gpu7", "gpu9"], ..GOOD });
    let log = Path::new(&bad).join("rank1.log");
    let text = fs::read_to_string(&log).expect("readable").replace("2.27.7+cuda12.9", "2.21.5+cuda12.4");
    fs::write(&log, text).expect("writable");
    let json = json(&good, &bad, 1);
    let version = named(&json, "NCCL");
    assert_eq!(version["weight"], "likely");
    assert_eq!(version["bad"], serde_json::json!([{"value": "2.21.5+cuda12.4", "nodes": [1]}, {"value": "2.27.7+cuda12.9", "nodes": [0]}]));
    assert_eq!(json["bad"]["nodes"], serde_json::json!(["gpu7", "gpu9"]));
    assert!(json["notes"].to_string().contains("used different machines"));
    assert!(!json["differences"].to_string().contains("node1"), "names of machines are no difference: {json}");
    let text = out(&diff(&[&good, &bad, "--no-config"]).code(1));
    assert!(text.contains("2.21.5+cuda12.4 on gpu9; 2.27.7+cuda12.9 on gpu7"), "{text}");
}

#[test]
fn what_changes_only_the_log_does_not_matter() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { env: &[("NCCL_DEBUG", "TRACE"), ("NCCL_IB_HCA", "mlx5")], ..GOOD });
    let json = json(&good, &bad, 0);
    assert_eq!(names(&json, "minor"), ["NCCL_DEBUG"]);
    assert!(out(&diff(&[&good, &bad, "--no-config"]).code(0)).starts_with("The runs differ in nothing that matters, only in 1 small thing."));
}

#[test]
fn a_run_that_stops_early_shows_where() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { complete: false, ..GOOD });
    let json = json(&good, &bad, 1);
    let stage = named(&json, "ranks came to");
    assert_eq!((&stage["good"][0]["value"], &stage["bad"][0]["value"]), (&"Init COMPLETE".into(), &"connecting channels".into()));
}

#[test]
fn logs_digests_and_pipes_compare_alike() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { net: "Socket", ..GOOD });
    let digest = |folder: &str| {
        let target = format!("{folder}.digest");
        Command::cargo_bin("ncclog").expect("the binary").args(["digest", folder, "-o", &target]).assert().code(0);
        target
    };
    let wanted = json(&good, &bad, 1);
    let (g, b) = (digest(&good), digest(&bad));
    for (x, y) in [(&g, &b), (&good, &b), (&g, &bad)] {
        let got = json(x, y, 1);
        assert_eq!((&got["differences"], &got["same"], &got["notes"]), (&wanted["differences"], &wanted["same"], &wanted["notes"]));
    }
    let piped = Command::cargo_bin("ncclog").expect("the binary").args(["diff", &good, "-", "--format", "json"]).write_stdin(fs::read(&b).expect("readable")).assert().code(1);
    assert_eq!(serde_json::from_str::<Value>(&out(&piped)).expect("JSON")["differences"], wanted["differences"]);
}

#[test]
fn markdown_is_a_table_that_nothing_breaks() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { env: &[("NCCL_DEBUG", "INFO"), ("NCCL_IB_HCA", "a|b<script>*x*")], ..GOOD });
    let text = out(&diff(&[&good, &bad, "--no-config", "--format", "markdown"]).code(1));
    let cells = |l: &str| l.replace("\\|", "").matches('|').count();
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("NCCL_IB_HCA") && l.starts_with('|')).collect();
    assert_eq!(rows.iter().map(|l| cells(l)).collect::<Vec<_>>(), [5], "{text}");
    assert!(!text.contains("<script>") && text.starts_with("# The runs differ in"), "{text}");
}

#[test]
fn facts_of_hosts_are_compared_where_both_runs_have_them() {
    let dir = TempDir::new().expect("a temporary folder");
    let collected = |folder: &str, mtu: u32| {
        let text = format!(
            "### ncclog-collect 1 host=node1 time=2026-05-04T10:00:00Z\n### $ ip -d link show\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT group default qlen 1000\n### exit 0\n"
        );
        fs::write(Path::new(folder).join("facts.node1.txt"), text).expect("writable");
    };
    let (good, bad) = (logs(&dir, "good", &GOOD), logs(&dir, "bad", &GOOD));
    collected(&good, 9000);
    assert_eq!(json(&good, &bad, 0)["differences"].as_array().map(Vec::len), Some(0), "one side alone tells no change");
    collected(&bad, 1500);
    let json = json(&good, &bad, 1);
    let mtu = named(&json, "MTU of eth0");
    assert_eq!((&mtu["topic"], &mtu["good"], &mtu["weight"]), (&"host".into(), &serde_json::json!([{"value": "9000", "nodes": [0]}]), &"likely".into()));
}

#[test]
fn redaction_hides_the_names_and_keeps_the_differences() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &Run { hosts: ["orion-7", "orion-9"], ..GOOD });
    let bad = logs(&dir, "bad", &Run { hosts: ["orion-7", "vega-1"], net: "Socket", env: &[("NCCL_IB_DISABLE", "1")], ..GOOD });
    let plain = json(&good, &bad, 1);
    let done = diff(&[&good, &bad, "--no-config", "--format", "json", "--redact"]).code(1);
    let text = out(&done);
    assert!(plain.to_string().contains("vega-1"));
    for secret in ["orion", "vega", &dir.path().display().to_string()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let redacted: Value = serde_json::from_str(&text).expect("JSON");
    let order = |j: &Value| j["differences"].as_array().expect("a list").iter().map(|d| (d["name"].clone(), d["weight"].clone())).collect::<Vec<_>>();
    assert_eq!(order(&redacted), order(&plain));
    assert_eq!(redacted["good"]["nodes"][0], redacted["bad"]["nodes"][0], "the same host has the same name on both sides");
    assert_ne!(redacted["good"]["nodes"][1], redacted["bad"]["nodes"][1]);
}

#[test]
fn hostile_names_stay_text() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let bad = logs(&dir, "bad", &Run { version: "2.27.7\x1b[31m", ..GOOD });
    let done = diff(&[&good, &bad, "--no-config", "--color", "never"]);
    assert!(!out(&done).contains('\x1b'), "{}", out(&done));
    assert!(out(&diff(&[&good, &bad, "--no-config", "--color", "always"])).contains("\x1b[1m"));
}

#[test]
fn what_cannot_be_compared_is_said() {
    let dir = TempDir::new().expect("a temporary folder");
    let good = logs(&dir, "good", &GOOD);
    let gone = dir.path().join("gone").display().to_string();
    let done = diff(&[&good, &gone]).code(2);
    assert!(stderr(&done).contains("gone: no such file"), "{}", stderr(&done));
    let empty = dir.path().join("empty.log");
    fs::write(&empty, "").expect("writable");
    let done = diff(&[&good, &empty.display().to_string()]).code(2);
    assert!(stderr(&done).contains("nothing to compare"), "{}", stderr(&done));
    diff(&["-", "-"]).code(2);
    diff(&[&good]).code(2);
    diff(&[&good, &good, "--format", "html"]).code(2);
    // Written to a file, never over an input.
    let report = dir.path().join("diff.json").display().to_string();
    diff(&[&good, &good, "--format", "json", "--output", &report]).code(0).stdout("");
    assert!(fs::read_to_string(&report).expect("readable").contains("ncclog.diff/1"));
    let log = Path::new(&good).join("rank0.log").display().to_string();
    diff(&[&good, &good, "--output", &log]).code(2);
    assert!(fs::read_to_string(&log).expect("readable").contains("NCCL version"));
}

#[test]
fn the_schema_is_printed() {
    let done = Command::cargo_bin("ncclog").expect("the binary").args(["schema", "diff"]).assert().code(0);
    assert_eq!(out(&done), include_str!("../src/diff/diff.schema.json"));
}

/// Every pair of unlike fixtures: written in all formats, by the schema, within the width.
#[test]
fn fixtures_compare_with_each_other() {
    let mut folders: Vec<String> =
        fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).filter(|e| e.path().is_dir()).map(|e| e.path().display().to_string()).collect();
    folders.sort();
    let analyses: Vec<_> = folders
        .iter()
        .step_by(4)
        .map(|f| (f, ncclog::analysis::analyze(&ncclog::analysis::Options { inputs: vec![f.clone()], ..Default::default() }, &ncclog::analysis::Silent).analysis))
        .collect();
    let schema: Value = serde_json::from_str(ncclog::diff::JSON_SCHEMA).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (i, (name, analysis)) in analyses.iter().enumerate() {
        let (other, second) = &analyses[(i * 7 + 3) % analyses.len()];
        let found = ncclog::diff::compare((name, analysis), (other, second));
        let write = |format| {
            let mut out = Vec::new();
            ncclog::diff::write(format, &found, &mut out, 80, false).expect("memory");
            String::from_utf8(out).expect("text")
        };
        assert!(validator.is_valid(&serde_json::from_str(&write(ncclog::diff::Format::Json)).expect("JSON")), "{name} {other}");
        for line in write(ncclog::diff::Format::Text).lines() {
            assert!(line.chars().count() <= 80 || line.contains('`'), "{name} {other}: {line}");
        }
        assert!(write(ncclog::diff::Format::Markdown).chars().count() <= 65_536);
        assert!(!ncclog::diff::compare((name, analysis), (name, analysis)).matters(), "{name}");
    }
}
