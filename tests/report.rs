//! The writers on analyses built by hand: layout, bounds, safety, and the JSON contract.

mod support;

use ncclog::event::Stage;
use ncclog::report::{Format, JSON_SCHEMA, Options, write};
use ncclog::rules::{Analysis, Confidence, Finding, Severity, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{analysis, cluster, empty, evidence, healthy, tcp_fallback};
use unicode_width::UnicodeWidthStr;

fn text_of(analysis: &Analysis, options: &Options) -> String {
    let mut out = Vec::new();
    write(Format::Text, analysis, &mut out, options).expect("a vector takes all");
    String::from_utf8(out).expect("reports are UTF-8")
}

fn text(analysis: &Analysis, width: usize) -> String {
    text_of(analysis, &Options { width, ..Options::default() })
}

fn json_text(analysis: &Analysis) -> String {
    let mut out = Vec::new();
    write(Format::Json, analysis, &mut out, &Options::default()).expect("a vector takes all");
    String::from_utf8(out).expect("reports are UTF-8")
}

fn json(analysis: &Analysis) -> Value {
    serde_json::from_str(&json_text(analysis)).expect("the report is JSON")
}

/// Takes colours out; they are the only escapes that a writer may send.
fn without_color(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 2..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(tail.len());
        assert!(tail[end..].starts_with('m'), "an escape that is no colour: {tail:?}");
        rest = &tail[end + 1..];
    }
    out + rest
}

fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::draft202012::new(&schema).expect("the schema compiles")
}

#[test]
fn failed_report() {
    insta::assert_snapshot!(text(&tcp_fallback(), 80));
}

#[test]
fn healthy_report() {
    insta::assert_snapshot!(text(&healthy(), 80));
}

#[test]
fn cluster_report() {
    insta::assert_snapshot!(text(&cluster(4096), 100));
}

#[test]
fn inconclusive_report() {
    insta::assert_snapshot!(text(&empty(), 80));
}

#[test]
fn json_report() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    insta::assert_snapshot!(json_text(&tcp_fallback()).replace(&version, "\"version\": \"…\""));
}

#[test]
fn three_lines_suffice() {
    let brief = text_of(&tcp_fallback(), &Options { brief: true, ..Options::default() });
    let lines: Vec<&str> = brief.lines().collect();
    assert_eq!(lines.len(), 3, "{brief}");
    assert!(lines[0].starts_with("FAILED: 2 nodes exchange data over TCP"));
    assert!(lines[1].starts_with("proof: logs/rank0.log:12  "));
    assert_eq!(lines[2], "next:  ibv_devinfo -l");
    assert!(text(&tcp_fallback(), 80).starts_with(&brief));
}

#[test]
fn a_finding_without_commands_still_says_what_is_next() {
    let mut finding = Finding::new("some-cause", Severity::Error, Confidence::Likely, "title");
    finding.verify = vec!["look there".to_owned()];
    let next = |finding: &Finding, notes: &[&str]| {
        let mut analysis = analysis(Verdict::Failed, vec![finding.clone()]);
        analysis.notes = notes.iter().map(ToString::to_string).collect();
        text(&analysis, 80).lines().find(|l| l.starts_with("next:")).map(str::to_owned)
    };
    assert_eq!(next(&finding, &["a note"]).as_deref(), Some("next:  look there"));
    finding.verify.clear();
    assert_eq!(next(&finding, &["a note"]).as_deref(), Some("next:  a note"));
    assert_eq!(next(&finding, &[]), None);
}

#[test]
fn only_commands_are_wider_than_asked() {
    for analysis in [tcp_fallback(), healthy(), cluster(4096)] {
        for width in [40, 60, 80, 100] {
            for line in text(&analysis, width).lines() {
                let is_command = analysis.findings.iter().flat_map(|f| f.fixes.iter().flat_map(|f| &f.commands).chain(&f.verify)).any(|c| line.ends_with(c.as_str()));
                assert!(is_command || line.width() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn wide_terminals_do_not_stretch_prose() {
    let mut analysis = tcp_fallback();
    analysis.findings[0].why = "word ".repeat(100);
    let report = text(&analysis, 200);
    let prose: Vec<&str> = report.lines().filter(|l| l.contains("word word")).collect();
    assert!(prose.len() == 6 && prose.iter().all(|l| l.width() <= 100), "{report}");
}

#[test]
fn commands_are_never_broken() {
    let report = text(&tcp_fallback(), 40);
    let command = &tcp_fallback().findings[0].fixes[1].commands[0];
    assert!(command.len() > 80 && report.lines().any(|l| l.trim() == command), "{report}");
}

#[test]
fn four_thousand_ranks_fit_two_screens() {
    let report = text(&cluster(4096), 80);
    assert!(report.lines().count() <= 100, "{report}");
    let table = report.split("Ranks\n").nth(1).expect("there is a table").split("\n\n").next().unwrap_or_default();
    assert!(table.lines().count() <= 14, "{table}");
    for row in ["0-1364,1366-4094", "1365", "4095"] {
        assert!(table.lines().any(|l| l.starts_with(&format!("{row} "))), "{row} in {table}");
    }
}

#[test]
fn differing_ranks_keep_their_own_row() {
    let mut analysis = healthy();
    analysis.job.ranks[5].stage = Stage::InitStart;
    analysis.job.ranks.remove(6);
    let report = text(&analysis, 80);
    let row = |start: &str| report.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("{start} in {report}"));
    assert!(row("0-3 ").contains("node1") && row("0-3 ").contains("running collectives"));
    assert!(row("4,7 ").contains("node2"));
    assert!(row("5 ").contains("bootstrap (waiting for ranks)"));
    assert!(row("6 ").contains("not in these logs"));
}

#[test]
fn consequences_fold_under_their_cause() {
    let mut findings: Vec<Finding> = ["first-cause", "victim", "victims-victim", "ring-a", "ring-b"]
        .into_iter()
        .map(|id| Finding::new(id, Severity::Error, Confidence::Certain, format!("title of {id}")))
        .collect();
    for (index, cause) in [(1, "first-cause"), (2, "victim"), (3, "ring-b"), (4, "ring-a")] {
        findings[index].caused_by = Some(cause);
    }
    let report = text(&analysis(Verdict::Failed, findings), 80);
    for line in [
        "Findings: 3 errors, 2 consequences",
        "1. [error, certain] first-cause: title",
        "led to: victim: title",
        "led to: victims-victim: title",
        "2. [error, certain] ring-a",
        "3. [error, certain] ring-b",
    ] {
        assert!(report.contains(line), "{line} in {report}");
    }
}

#[test]
fn colour_is_only_colour() {
    let plain = Options::default();
    let colored = Options { color: true, ..plain };
    for analysis in [tcp_fallback(), healthy(), empty(), cluster(64)] {
        let with = text_of(&analysis, &colored);
        assert!(with.contains("\x1b["));
        assert_eq!(without_color(&with), text_of(&analysis, &plain));
    }
}

#[test]
fn every_output_meets_the_schema() {
    let schema = schema();
    for analysis in [tcp_fallback(), healthy(), empty(), cluster(256), cluster(4096)] {
        let document = json(&analysis);
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_schema_knows_every_stage() {
    let stages = Stage::ALL;
    let mut analysis = healthy();
    let schema = schema();
    for stage in stages {
        analysis.job.ranks[0].stage = stage;
        assert!(schema.is_valid(&json(&analysis)), "{stage:?}");
    }
}

#[test]
fn the_schema_refuses_what_the_contract_does_not_allow() {
    let schema = schema();
    let good = json(&tcp_fallback());
    for (pointer, wrong) in [
        ("/schema", json!("ncclog.analysis/2")),
        ("/verdict", json!("fine")),
        ("/inputs/0/lines", json!("12")),
        ("/job/library", json!("cuda")),
        ("/job/nranks", json!(-1)),
        ("/job/ranks/0/stage", json!("done")),
        ("/job/transports/0", json!({})),
        ("/findings/0/severity", json!("fatal")),
        ("/findings/0/confidence", json!(0.5)),
        ("/findings/0/id", json!("TCP fallback")),
        ("/findings/0/evidence/0", json!({"file": "a"})),
        ("/findings/0/fixes/0/commands", json!("one")),
        ("/notes", Value::Null),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = wrong;
        assert!(!schema.is_valid(&document), "{pointer}");
    }
}

#[test]
fn transports_are_per_rank_up_to_256_and_per_host_above() {
    let small = json(&cluster(256));
    assert_eq!(small["job"]["transports"][0], json!({"from": 0, "to": 1, "via": "P2P/CUMEM", "channels": 2}));
    assert_eq!(small["job"]["transports_total"], 256);
    let large = json(&cluster(264));
    assert_eq!(large["job"]["transports"][1], json!({"from_host": "node000", "to_host": "node000", "via": "P2P/CUMEM", "channels": 14, "pairs": 7}));
    // Within every node, to the next node, and from and to the last rank, whose host no log names.
    assert_eq!(large["job"]["transports_total"], 33 + 32 + 2);
}

#[test]
fn communicators_are_capped_and_counted() {
    let mut analysis = healthy();
    analysis.job.comms.extend((1..=300).map(|id| support::comm(id, 8)));
    let document = json(&analysis);
    assert_eq!(document["job"]["communicators"].as_array().map(Vec::len), Some(256));
    assert_eq!(document["job"]["communicators_total"], 301);
    assert_eq!(document["job"]["communicators"][0]["id"], "0xfeed");
}

#[test]
fn json_is_lossless_and_harmless() {
    let hostile = "a\u{1b}[2Jb\u{9b}c\u{202e}d\u{e0041}\n\"\\ é";
    let mut analysis = tcp_fallback();
    analysis.findings[0].evidence[0].text = hostile.to_owned();
    assert_eq!(json(&analysis)["findings"][0]["evidence"][0]["text"], hostile);
    assert!(!json_text(&analysis).contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}']));
}

fn is_active(c: char) -> bool {
    c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{feff}'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a log holds, in whatever field it lands: the terminal gets printable text and our own colours.
    #[test]
    fn no_input_reaches_the_terminal_raw(hostile in proptest::collection::vec(any::<char>(), 1..40), escapes in any::<bool>(), width in 40usize..200) {
        let hostile: String = hostile.into_iter().chain(if escapes { "\x1b]0;x\x07\r\u{202e}" } else { "" }.chars()).collect();
        let mut analysis = tcp_fallback();
        let finding = &mut analysis.findings[0];
        for field in [&mut finding.title, &mut finding.why, &mut finding.hosts[0]] {
            field.clone_from(&hostile);
        }
        finding.evidence.insert(0, evidence(&hostile, 3, &hostile));
        finding.fixes[0].commands[0].clone_from(&hostile);
        finding.fixes[0].title.clone_from(&hostile);
        finding.fixes[0].undo.clone_from(&hostile);
        finding.avoid.push(hostile.clone());
        finding.verify.push(hostile.clone());
        analysis.notes.push(hostile.clone());
        let job = &mut analysis.job;
        job.versions.push(hostile.clone());
        job.nets.push(hostile.clone());
        job.streams[0].problem = Some(hostile.clone());
        job.ranks[0].host = Some(hostile.clone());
        job.ranks[1].net = Some(hostile.clone());
        job.ranks[2].last.text.clone_from(&hostile);
        for color in [false, true] {
            let report = text_of(&analysis, &Options { width, color, ..Options::default() });
            let bare = if color { without_color(&report) } else { report };
            prop_assert_eq!(bare.chars().find(|c| is_active(*c)), None);
        }
        prop_assert_eq!(json_text(&analysis).chars().find(|c| is_active(*c)), None);
    }
}
