//! The fixtures as tests read them.

// Each test takes what it needs.
#![allow(dead_code)]

use ncclog::Analysis;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of all fixtures.
pub fn folders() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.join("expect.json").is_file()).collect();
    list.sort();
    list
}

/// The logs of a folder.
pub fn paths(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("folder").filter_map(Result::ok).map(|e| e.path());
    let mut list: Vec<PathBuf> = files.filter(|p| p.file_name().is_some_and(|n| n != "expect.json")).collect();
    list.sort();
    list
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().expect("named").to_string_lossy().into_owned()
}

/// Name and content of a folder's logs.
pub fn logs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    paths(folder).iter().map(|p| (name(p), fs::read(p).expect("log"))).collect()
}

/// What must be the same of two analyses of one job.
pub fn essence(analysis: &Analysis) -> Vec<String> {
    let finding = |f: &ncclog::Finding| {
        let lines: Vec<u64> = f.evidence.iter().map(|e| e.line).collect();
        format!("{} {:?} {:?} ranks {:?} hosts {} by {:?} path {:?} lines {lines:?}", f.id, f.severity, f.confidence, f.ranks, f.hosts.len(), f.caused_by, f.path)
    };
    let job = &analysis.job;
    let head = format!(
        "{:?} {:?} ranks {:?} nodes {:?} hosts {} runs {} nets {:?} {:?}",
        analysis.verdict,
        job.library,
        job.nranks,
        job.nnodes,
        job.hosts.len(),
        job.runs.len(),
        job.nets,
        job.versions
    );
    std::iter::once(head).chain(analysis.findings.iter().map(finding)).collect()
}
