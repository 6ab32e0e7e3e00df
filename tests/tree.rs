//! The decision tree and `--why-not`, in the binary and over all fixtures.

use assert_cmd::Command;
use ncclog::analysis::{Options, Silent, analyze};
use ncclog::rules::tree::{End, LEAVES, NODES, leaf_of};
use ncclog::rules::{Analysis, Standing, causes, why_not};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut list: Vec<PathBuf> = std::fs::read_dir(folder).expect("there are fixtures").map(|e| e.expect("it can be read").path()).filter(|p| p.is_dir()).collect();
    list.sort();
    list
}

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name).display().to_string()
}

fn analysis(path: &str) -> Analysis {
    analyze(&Options { inputs: vec![path.to_owned()], ..Options::default() }, &Silent).analysis
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ncclog")).args(args).output().expect("the binary runs")
}

fn piped(args: &[&str], log: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ncclog")).args(args).write_stdin(log).output().expect("the binary runs")
}

/// The words with single blanks, however the lines were broken.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("reports are UTF-8")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_slice(&run(&[&["--no-config", "--format", "json"], args].concat()).stdout).expect("it is JSON")
}

#[test]
fn explain_prints_the_whole_tree() {
    let output = run(&["explain", "--tree"]);
    assert_eq!(output.status.code(), Some(0));
    let text = out(&output);
    for id in NODES.iter().map(|n| n.id).chain(LEAVES.iter().map(|l| l.id)) {
        assert!(text.lines().any(|l| l == id), "{id} in {text}");
    }
    for probe in NODES.iter().flat_map(|n| n.probes) {
        assert!(text.contains(&format!("probe: {}", probe.command)), "{}", probe.command);
    }
    assert_eq!(run(&["explain", "--tree", "tcp-fallback"]).status.code(), Some(2));
}

#[test]
fn every_founding_finding_says_what_decided_its_path() {
    let mut seen = std::collections::BTreeSet::new();
    for path in fixtures() {
        let analysis = analysis(&path.display().to_string());
        for finding in &analysis.findings {
            let Some(leaf) = leaf_of(finding.id) else {
                assert!(finding.decisions.is_empty(), "{}", finding.id);
                continue;
            };
            seen.insert(finding.id);
            let nodes: Vec<&str> = finding.decisions.iter().map(|d| d.node).chain([leaf.id]).collect();
            assert_eq!(nodes, finding.path, "{}", path.display());
            for decision in &finding.decisions {
                // Either a line, or the commands that decide with what their outcomes mean.
                assert_eq!(decision.evidence.is_some(), decision.probes.is_empty() && decision.outcomes.is_empty(), "{}", path.display());
            }
        }
        let roots = || analysis.findings.iter().filter(|f| f.is_root());
        if analysis.walk.end == End::Clear {
            assert!(roots().all(|f| leaf_of(f.id).is_none()), "{}", path.display());
        }
        if analysis.walk.end == End::Leaf {
            assert!(analysis.findings.iter().any(|f| leaf_of(f.id).is_some_and(|l| l.id == analysis.walk.at)), "{}", path.display());
        }
    }
    assert_eq!(seen.len(), LEAVES.len(), "{seen:?}");
}

#[test]
fn a_path_shows_the_lines_that_decided_it() {
    let text = flat(&out(&run(&["--no-config", &fixture("tcp-container-without-infiniband")])));
    let (_, path) = text.split_once("path: q-cluster-or-single-host-p2p > ").unwrap_or_else(|| panic!("{text}"));
    let (path, _) = path.split_once(" fix").expect("fixes follow");
    assert!(path.contains(" q-cluster-or-single-host-p2p: several nodes") && path.contains(" q-rocev2-socket-or-qp-error: data goes over NET/Socket"), "{path}");
    assert_eq!(path.matches(".log:").count(), 2, "{path}");
}

#[test]
fn an_undecided_branch_names_the_command_and_its_outcomes() {
    let mut log = String::new();
    for rank in 0..2 {
        let line = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.";
        writeln!(log, "[rank{rank}]:[E1130 12:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] {line}").expect("a string takes all");
    }
    let text = flat(&out(&piped(&["--no-config", "-"], &log)));
    assert!(text.contains("not decided by the log; `nvidia-smi topo -m` or `ibv_devices` decides:"), "{text}");
    assert!(text.contains("- q-rocev2-socket-or-qp-error: the matrix has NIC rows"), "{text}");
}

#[test]
fn the_tree_opens_where_the_evidence_stops() {
    let head = "node1:10:11 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\n";
    let text = out(&piped(&["analyze", "--no-config", "--tree", "-"], head));
    let tree = &text[text.find("Decision tree\n").unwrap_or_else(|| panic!("{text}"))..];
    assert!(tree.contains("q-cluster-or-single-host-p2p\n") && tree.contains("probe: nvidia-smi topo -m") && tree.contains("shown by: "), "{tree}");
    // One question only: the one at which it stopped.
    assert!(!tree.contains("probe: cat /proc/cmdline"), "{tree}");

    let healthy = out(&run(&["--no-config", "--tree", &fixture("healthy-infiniband-sharp-warning")]));
    assert!(healthy.contains("nothing points to") && !healthy.contains("probe: "), "{healthy}");
    let leaf = out(&run(&["--no-config", "--tree", &fixture("tcp-container-without-infiniband")]));
    assert!(leaf.contains("sol-connectx7-rocev2-hca-binding\n") && leaf.contains("mend:  Point the interface"), "{leaf}");
    assert_eq!(json(&[&fixture("tcp-container-without-infiniband")])["tree"]["end"], "leaf");
}

#[test]
fn why_not_names_the_line_that_rules_it_out() {
    let document = json(&[&fixture("healthy-infiniband-sharp-warning"), "--why-not", "tcp-fallback", "--why-not", "rccl-sdma-rdna"]);
    let answers = document["why_not"].as_array().expect("a list");
    assert_eq!(answers.len(), 2);
    assert_eq!((&answers[0]["cause"], &answers[0]["standing"]), (&"tcp-fallback".into(), &"ruled_out".into()));
    let reason = &answers[0]["reasons"][0];
    assert!(reason["text"].as_str().is_some_and(|t| t.starts_with("Data between nodes goes over IB")), "{reason}");
    assert!(reason["evidence"]["text"].as_str().is_some_and(|t| t.contains("IB")), "{reason}");
    assert_eq!(answers[1]["standing"], "ruled_out");

    let single = json(&[&fixture("healthy-one-node-net-ib-words"), "--why-not", "tcp-fallback"]);
    assert!(single["why_not"][0]["reasons"][0]["text"].as_str().is_some_and(|t| t.contains("on one node")), "{single}");
    let text = out(&run(&["--no-config", &fixture("healthy-infiniband-sharp-warning"), "--why-not", "tcp-fallback"]));
    assert!(text.contains("Why not\ntcp-fallback: ruled out\n  - Data between nodes goes over IB"), "{text}");
}

#[test]
fn why_not_of_what_was_found_and_of_nonsense() {
    let found = json(&[&fixture("tcp-container-without-infiniband"), "--why-not", "tcp-fallback"]);
    assert_eq!(found["why_not"][0]["standing"], "found");
    let output = run(&["--no-config", &fixture("healthy-infiniband-sharp-warning"), "--why-not", "tcp-falback"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `tcp-fallback`?") && output.stdout.is_empty());
}

/// Every cause has an answer for every log, and the answer agrees with the findings.
#[test]
fn why_not_answers_for_every_cause() {
    let schema: Value = serde_json::from_str(ncclog::report::JSON_SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("the schema compiles");
    for path in fixtures() {
        let mut analysis = analysis(&path.display().to_string());
        let answers: Vec<_> = causes().map(|c| why_not(&analysis, c.id).expect("it is a cause")).collect();
        for answer in &answers {
            let found = analysis.findings.iter().any(|f| f.id == answer.cause);
            assert_eq!(found, matches!(answer.standing, Standing::Found | Standing::Consequence), "{} in {}", answer.cause, path.display());
            assert!(!answer.reasons.is_empty(), "{} in {}", answer.cause, path.display());
        }
        analysis.why_not = answers;
        let mut text = Vec::new();
        ncclog::report::json::write(&analysis, &mut text).expect("a vector takes all");
        let document: Value = serde_json::from_slice(&text).expect("it is JSON");
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
    assert!(why_not(&analysis(&fixture("healthy-infiniband-sharp-warning")), "no-such-cause").is_none());
}
