//! Digests: what is said of them is what is said of the logs, however they were cut, packed, merged and mixed; and a
//! file from an untrusted host does no harm.

use assert_cmd::Command;
use ncclog::analysis::{Options, Silent, analyze, merge, read};
use ncclog::digest::disk;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn dir() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn ncclog(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("ncclog").expect("the binary").args(args).assert()
}

fn fixtures() -> Vec<Vec<String>> {
    let mut folders: Vec<PathBuf> = fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    let logs = |folder: &PathBuf| {
        let files = fs::read_dir(folder).expect("folder").filter_map(Result::ok).map(|e| e.path());
        let mut list: Vec<String> = files.filter(|p| p.extension().is_some_and(|e| e != "json")).map(|p| p.display().to_string()).collect();
        list.sort();
        list
    };
    folders.iter().map(logs).filter(|l| !l.is_empty()).collect()
}

fn options(inputs: &[String]) -> Options {
    Options { inputs: inputs.to_vec(), ..Options::default() }
}

/// The JSON report. What only the files themselves can tell is taken out: the quoted line of a call.
fn report(inputs: &[String]) -> Value {
    let outcome = analyze(&options(inputs), &Silent);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let mut out = Vec::new();
    ncclog::report::json::write(&outcome.analysis, &mut out).expect("memory");
    let mut json: Value = serde_json::from_slice(&out).expect("JSON");
    for finding in json["findings"].as_array_mut().expect("a list").iter_mut().filter(|f| f["id"] == "collective-mismatch") {
        finding["evidence"].as_array_mut().expect("a list").iter_mut().for_each(|e| e["text"] = Value::Null);
    }
    json
}

fn digest_of(inputs: &[String], target: &Path) -> String {
    let reading = read(&options(inputs), &Silent);
    assert!(reading.problems.is_empty(), "{:?}", reading.problems);
    let mut bytes = Vec::new();
    disk::write(&reading.digest, &mut bytes).expect("memory");
    fs::write(target, bytes).expect("writable");
    target.display().to_string()
}

fn merged(inputs: &[String], target: &Path) -> String {
    let reading = merge(inputs);
    assert!(reading.problems.is_empty() && reading.notes.is_empty(), "{:?} {:?}", reading.problems, reading.notes);
    let mut bytes = Vec::new();
    disk::write(&reading.digest, &mut bytes).expect("memory");
    fs::write(target, bytes).expect("writable");
    target.display().to_string()
}

#[test]
fn digests_say_what_the_logs_say() {
    let dir = dir();
    for logs in fixtures() {
        let wanted = report(&logs);
        let path = |name: &str| dir.path().join(name);
        let each: Vec<String> = logs.iter().enumerate().map(|(i, l)| digest_of(std::slice::from_ref(l), &path(&format!("n{i}.digest")))).collect();
        assert_eq!(report(&each), wanted, "{logs:?}: a digest a file");
        let whole = digest_of(&logs, &path("whole.digest"));
        assert_eq!(report(std::slice::from_ref(&whole)), wanted, "{logs:?}: one digest");
        let again = digest_of(std::slice::from_ref(&whole), &path("again.digest"));
        assert_eq!(report(&[again]), wanted, "{logs:?}: a digest of a digest");
        if logs.len() < 2 {
            continue;
        }
        // The last first, then the others one by one.
        let mut all = each[each.len() - 1].clone();
        for (i, one) in each[..each.len() - 1].iter().enumerate() {
            all = merged(&[all, one.clone()], &path(&format!("m{i}.digest")));
        }
        assert_eq!(report(std::slice::from_ref(&all)), wanted, "{logs:?}: merged in stages");
        let mixed: Vec<String> = logs.iter().zip(&each).enumerate().map(|(i, (log, digest))| if i % 2 == 0 { log.clone() } else { digest.clone() }).collect();
        assert_eq!(report(&mixed), wanted, "{logs:?}: logs and digests");
    }
}
