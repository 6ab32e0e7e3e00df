//! `ncclog.toml` as people meet it: own rules, silences, where it is looked for, mistakes.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const RULES: &str = r#"
[[rule]]
id = "lost-carrier"
severity = "error"
confidence = "certain"
pattern = "^{!dev}: lost carrier$"
title = "A link of the fabric went down"
text = "The switch port flaps when its transceiver is too hot."
fix = "Reseat the transceiver"
commands = ["ip -br link"]
verify = ["ethtool fab0 | grep Link"]

[[rule]]
id = "flux-valve"
severity = "warning"
contains = "flux valve {shut}"
title = "The flux valve is shut"
"#;

/// A log with one line of a driver, one unknown warning and one that a rule knows.
const LOG: &str = "\
node1:10:11 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
fab0: lost carrier
fab1: lost carrier
the word lost carrier alone ties to nothing
node1:10:11 [0] NCCL WARN flux valve {shut} at 0x7f00
node1:10:11 [0] NCCL WARN something else entirely 17
";

/// A folder with a log, a home without configuration, and the binary to run there.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        place.write("job.log", LOG);
        place
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("the folder is writable");
        fs::write(&path, text).expect("the folder is writable");
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ncclog"));
        command.current_dir(self.folder.path()).env("XDG_CONFIG_HOME", self.folder.path().join("home"));
        command.args(args).output().expect("the binary runs")
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[&["--format", "json"], args].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it exits by itself")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("reports are UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name).display().to_string()
}

#[test]
fn own_rules_find_their_lines() {
    let place = Place::new();
    let config = place.write("mine.toml", RULES);
    let config = config.to_str().expect("UTF-8");
    let report = place.run(&["--config", config, "job.log"]);
    assert_eq!(code(&report), 1, "{}", err(&report));
    let text = out(&report);
    assert!(text.starts_with("FAILED: A link of the fabric went down"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("next: ip -br link") && text.contains("2 lines match this rule's pattern.") && text.contains("mine.toml is in force: 2 rules and 0 silences"), "{text}");

    let document = place.json(&["--config", config, "job.log"]);
    let ids: Vec<&str> = document["findings"].as_array().expect("a list").iter().filter_map(|f| f["id"].as_str()).collect();
    assert_eq!(ids, ["lost-carrier", "flux-valve"]);
    let lines: Vec<u64> = document["findings"][0]["evidence"].as_array().expect("a list").iter().filter_map(|e| e["line"].as_u64()).collect();
    assert_eq!(lines, [2, 3]);
    // What a rule knows is no unknown warning any more.
    let unknown: Vec<&str> = document["unknown_warnings"].as_array().expect("a list").iter().filter_map(|w| w["template"].as_str()).collect();
    assert_eq!(unknown, ["something else entirely #"]);
    let schema: Value = serde_json::from_str(ncclog::report::JSON_SCHEMA).expect("the schema is JSON");
    let errors: Vec<String> = jsonschema::draft202012::new(&schema).expect("it compiles").iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn without_a_configuration_nothing_changes() {
    let place = Place::new();
    let document = place.json(&["job.log"]);
    assert_eq!(document["findings"].as_array().map(Vec::len), Some(0));
    assert_eq!(document["unknown_warnings"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["silenced"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_silenced_cause_is_listed_and_does_not_count() {
    let place = Place::new();
    let log = fixture("tcp-ib-disabled-by-env");
    assert_eq!(code(&place.run(&["--fail-on", "warning", &log])), 1);
    place.write("ncclog.toml", "[[silence]]\ncause = \"tcp-fallback\"\nreason = \"these nodes have no fabric\"\n");
    let report = place.run(&["--fail-on", "warning", &log]);
    assert_eq!(code(&report), 0, "{}", out(&report));
    let text = out(&report);
    assert!(text.contains("Silenced by your configuration\n- tcp-fallback: ") && text.contains("reason: these nodes have no fabric"), "{text}");
    let document = place.json(&[&log, "--why-not", "tcp-fallback"]);
    assert_eq!(document["silenced"][0]["finding"]["id"], "tcp-fallback");
    assert!(document["silenced"][0]["warning"].is_null());
    assert_eq!(document["why_not"][0]["standing"], "silenced");
    assert_eq!(code(&place.run(&["--fail-on", "warning", "--no-config", &log])), 1);
}

#[test]
fn a_silenced_pattern_takes_warnings_and_findings_by_their_proof() {
    let place = Place::new();
    let text =
        format!("{RULES}\n[[silence]]\npattern = \"^{{dev}}: lost carrier\"\nreason = \"maintenance\"\n[[silence]]\ncontains = \"something else\"\nreason = \"old driver\"\n");
    place.write("ncclog.toml", &text);
    let document = place.json(&["job.log"]);
    let silenced = document["silenced"].as_array().expect("a list");
    assert_eq!(silenced.len(), 2, "{silenced:?}");
    assert_eq!((&silenced[0]["finding"]["id"], &silenced[0]["reason"]), (&"lost-carrier".into(), &"maintenance".into()));
    assert_eq!((&silenced[1]["warning"]["count"], &silenced[1]["reason"]), (&1.into(), &"old driver".into()));
    assert_eq!(document["findings"].as_array().map(Vec::len), Some(1), "the other rule stands");
    assert_eq!(document["unknown_warnings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_project_comes_before_the_user() {
    let place = Place::new();
    let rule = |id: &str| format!("[[rule]]\nid = \"{id}\"\nseverity = \"info\"\ncontains = \"lost carrier\"\ntitle = \"t\"\n");
    let id = |args: &[&str]| place.json(args)["findings"][0]["id"].as_str().map(str::to_owned);
    place.write("home/ncclog/ncclog.toml", &rule("of-the-user"));
    assert_eq!(id(&["job.log"]).as_deref(), Some("of-the-user"));
    place.write("ncclog.toml", &rule("of-the-project"));
    assert_eq!(id(&["job.log"]).as_deref(), Some("of-the-project"));
    place.write("other.toml", &rule("of-the-moment"));
    assert_eq!(id(&["job.log", "--config", "other.toml"]).as_deref(), Some("of-the-moment"));
    assert_eq!(id(&["job.log", "--no-config"]), None);
    assert_eq!(code(&place.run(&["job.log", "--no-config", "--config", "other.toml"])), 2);
}

#[test]
fn a_mistake_names_its_place_and_stops() {
    let place = Place::new();
    for (text, start) in [
        (RULES.replace("severity = \"error\"", "severity = \"fatal\""), "ncclog: ncclog.toml:4:12: "),
        (RULES.replace("verify =", "verifi ="), "ncclog: ncclog.toml:11:1: "),
        (RULES.replace("{!dev}", "{!dev:q}"), "ncclog: ncclog.toml:6:13: "),
        ("[[silence]]\ncause = \"tcp-falback\"\nreason = \"x\"\n".to_owned(), "ncclog: ncclog.toml:2:9: there is no cause `tcp-falback`; did you mean `tcp-fallback`?"),
        ("[[rule]\n".to_owned(), "ncclog: ncclog.toml:1:"),
    ] {
        place.write("ncclog.toml", &text);
        let output = place.run(&["job.log"]);
        assert_eq!(code(&output), 2, "{start}");
        assert!(err(&output).starts_with(start) && out(&output).is_empty(), "{start}: {}", err(&output));
        assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    }
    fs::write(place.folder.path().join("ncclog.toml"), b"# ok\n# \xff\n").expect("the folder is writable");
    assert!(err(&place.run(&["job.log"])).starts_with("ncclog: ncclog.toml:2:3: no valid UTF-8"));
    let missing = place.run(&["job.log", "--config", "none.toml"]);
    assert_eq!(code(&missing), 2);
    assert!(err(&missing).contains("none.toml: cannot be read"), "{}", err(&missing));
}
