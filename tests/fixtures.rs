//! Every fixture says what must be found in it; this holds the analysis to it, prints the confusion matrix, and keeps
//! a snapshot of every JSON report.

use ncclog::analysis::{Options, Silent, analyze};
use ncclog::rules::{Analysis, Severity};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `expect.json` of a fixture; `fixtures/README.md` explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    findings: Vec<String>,
    verdict: String,
    #[serde(default)]
    verdict_also: Vec<String>,
    #[serde(default)]
    severity_none: bool,
    confidence: Option<String>,
    #[serde(default)]
    also_ok: Vec<String>,
    #[serde(default)]
    info: Vec<String>,
    #[expect(dead_code, reason = "tests/host_facts.rs looks at it")]
    #[serde(default)]
    alone: Option<serde_json::Value>,
    #[expect(dead_code, reason = "for people")]
    note: String,
}

fn folders() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.join("expect.json").is_file()).collect();
    list.sort();
    list
}

/// Paths are given relative to the package, so that reports are the same on every machine.
fn logs(folder: &Path) -> Vec<String> {
    let mut list: Vec<String> = std::fs::read_dir(folder)
        .expect("folder")
        .filter_map(Result::ok)
        .map(|e| e.path())
        .filter(|p| p.file_name().is_some_and(|n| n != "expect.json"))
        .map(|p| p.display().to_string())
        .collect();
    list.sort();
    list
}

fn run(folder: &Path) -> Analysis {
    let outcome = analyze(&Options { inputs: logs(folder), ..Options::default() }, &Silent);
    assert!(outcome.problems.is_empty(), "{}: {:?}", folder.display(), outcome.problems);
    outcome.analysis
}

fn lower(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).expect("plain").as_str().expect("a word").to_owned()
}

fn judge(expect: &Expect, analysis: &Analysis) -> Vec<String> {
    let mut wrong = Vec::new();
    let roots: Vec<_> = analysis.findings.iter().filter(|f| f.is_root()).collect();
    let ids: Vec<&str> = roots.iter().map(|f| f.id).collect();
    if let Some(first) = expect.findings.first() {
        if ids.first() != Some(&first.as_str()) {
            wrong.push(format!("first is {:?}, want {first}", ids.first()));
        }
        if let (Some(want), Some(got)) = (&expect.confidence, roots.first())
            && *want != lower(got.confidence)
        {
            wrong.push(format!("{} is {}, want {want}", got.id, lower(got.confidence)));
        }
    }
    for id in &ids {
        if !expect.findings.iter().chain(&expect.also_ok).any(|e| e == id) {
            wrong.push(format!("unexpected {id}"));
        }
    }
    for id in expect.findings.iter().filter(|id| !analysis.findings.iter().any(|f| f.id == id.as_str())) {
        wrong.push(format!("missed {id}"));
    }
    for finding in analysis.findings.iter().filter(|f| f.severity == Severity::Info) {
        if !expect.info.iter().any(|i| i == finding.id) && expect.severity_none && finding.id != "workaround-left" && finding.id != "gdr-disabled" {
            wrong.push(format!("unexpected info {}", finding.id));
        }
    }
    let verdict = lower(analysis.verdict);
    if verdict != expect.verdict && !expect.verdict_also.contains(&verdict) {
        wrong.push(format!("verdict {verdict}, want {}", expect.verdict));
    }
    wrong
}

#[test]
fn every_fixture_gets_its_diagnosis() {
    let mut matrix: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut failures = String::new();
    let folders = folders();
    assert!(folders.len() >= 24, "fixtures are missing");
    for folder in &folders {
        let expect: Expect = serde_json::from_slice(&std::fs::read(folder.join("expect.json")).expect("readable")).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        let analysis = run(folder);
        let want = expect.findings.first().cloned().unwrap_or_else(|| "healthy".to_owned());
        let got = analysis.findings.iter().find(|f| f.is_root()).map_or("healthy", |f| f.id).to_owned();
        *matrix.entry((want, got)).or_default() += 1;
        let wrong = judge(&expect, &analysis);
        if !wrong.is_empty() {
            let _ = writeln!(failures, "{}: {}", folder.display(), wrong.join("; "));
        }
    }
    println!("want → first finding: fixtures");
    for ((want, got), count) in &matrix {
        println!("{want} → {got}: {count}");
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(matrix.keys().all(|(want, got)| want == got), "the confusion matrix has entries off its diagonal");
}

#[test]
fn every_cause_has_two_fixtures() {
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for folder in folders() {
        let expect: Expect = serde_json::from_slice(&std::fs::read(folder.join("expect.json")).expect("readable")).expect("checked above");
        let ids: std::collections::BTreeSet<String> = expect.findings.into_iter().chain(expect.info).collect();
        for id in ids {
            *shown.entry(id).or_default() += 1;
        }
    }
    // What is expected of a job stands on the command line, not in its logs.
    let ids = ncclog::causes().map(|c| c.id).filter(|id| *id != "expectation-failed");
    let few: Vec<&str> = ids.filter(|id| shown.get(*id).is_none_or(|n| *n < 2)).collect();
    assert!(few.is_empty(), "fewer than two fixtures: {few:?}");
}

#[test]
fn every_json_report_is_as_it_was() {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        for folder in folders() {
            let mut out = Vec::new();
            ncclog::report::json::write(&run(&folder), &mut out).expect("memory");
            let text = String::from_utf8(out).expect("JSON is UTF-8").replace(env!("CARGO_PKG_VERSION"), "VERSION");
            insta::assert_snapshot!(format!("fixture-{}", folder.file_name().expect("named").to_string_lossy()), text);
        }
    });
}
