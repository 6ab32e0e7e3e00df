//! A job that writes while the binary follows: changes, signals, pipes, outputs that fail, events.

use crate::logs::{append, end, fatal, ncclog, signal, start, texts, until};
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_fatal_line_is_told_at_once_and_the_report_comes_at_the_end() {
    for poll in [None, Some("50ms")] {
        let folder = tempfile::tempdir().expect("a folder");
        let pattern = folder.path().join("rank*.log");
        let mut args = vec!["follow", pattern.to_str().expect("plain")];
        args.extend(poll.iter().flat_map(|p| ["--poll", p]));
        let mut child = ncclog(&args).spawn().expect("runs");
        thread::sleep(Duration::from_millis(300));
        for rank in 0..4 {
            append(&folder.path().join(format!("rank{rank}.log")), &start(rank, 4, "IB").concat());
        }
        let mut err = child.stderr.take().expect("piped");
        until(&mut err, "HEALTHY");
        fs::rename(folder.path().join("rank1.log"), folder.path().join("rank1.log.1")).expect("renames");
        let written = Instant::now();
        append(&folder.path().join("rank1.log"), &fatal(1));
        let told = until(&mut err, "gpu-oom");
        // Far more than it takes, for machines that are busy.
        assert!(written.elapsed() < Duration::from_secs(5), "{:?}", written.elapsed());
        assert!(told.lines().last().is_some_and(|l| l.contains("Z  FAILED  error")), "{told}");
        signal(&child, "TERM");
        let output = end(child);
        assert_eq!(output.status.code(), Some(1));
        let (out, _) = texts(&output);
        assert!(out.starts_with("FAILED") && out.contains("began anew once"), "{out}");
    }
}

#[test]
fn a_pipe_passes_through_unchanged() {
    let mut child = ncclog(&["follow", "-", "--tee"]).stdin(Stdio::piped()).spawn().expect("runs");
    let mut input = child.stdin.take().expect("piped");
    let mut out = child.stdout.take().expect("piped");
    let text = format!("{}\u{1b}[31m odd \r bytes {}", start(0, 1, "IB").concat(), fatal(0).trim_end());
    input.write_all(text.as_bytes()).expect("open");
    let mut passed = vec![0; text.len()];
    out.read_exact(&mut passed).expect("all of it, before the pipe ends");
    assert_eq!(passed, text.as_bytes());
    drop(input);
    let output = end(child);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("gpu-oom") && err.contains("FAILED: "), "a last line without its end counts: {err}");
}

#[test]
fn outputs_that_fail_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rank0.log"), start(0, 1, "IB").concat()).expect("writes");
    let path = folder.path().to_str().expect("plain");
    if fs::metadata("/dev/full").is_ok() {
        let output = end(ncclog(&["follow", path, "--timeout", "500ms", "--output", "/dev/full"]).spawn().expect("runs"));
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(err.contains("HEALTHY: ") && err.contains("/dev/full"), "{err}");
    }
    // Nobody reads the report.
    let mut child = ncclog(&["follow", path, "--timeout", "500ms"]).spawn().expect("runs");
    drop(child.stdout.take());
    assert_eq!(end(child).status.code(), Some(0));
    let missing = folder.path().join("never.log");
    let output = end(ncclog(&["follow", missing.to_str().expect("plain"), "--timeout", "500ms"]).spawn().expect("runs"));
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("waiting for") && err.contains("no such file appeared"), "{err}");
    let output = end(ncclog(&["follow", path, "--tee", "--timeout", "1s"]).spawn().expect("runs"));
    assert_eq!(output.status.code(), Some(2), "--tee needs a pipe");
}

#[test]
fn events_of_files_and_of_growing_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("rank0.log");
    fs::write(&log, start(0, 2, "IB").concat()).expect("writes");
    let path = folder.path().to_str().expect("plain");
    let output = ncclog(&["events", path, "--kind", "net,init"]).output().expect("runs");
    let events: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(output.status.code(), Some(0));
    assert!(events.iter().any(|e| e["kind"] == "init.complete" && e["rank"] == 0 && e["line"] == 8), "{events:?}");
    let output = ncclog(&["events", path, "--kind", "nett"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("did you mean net?"));
    let mut child = ncclog(&["events", "--follow", path, "--kind", "failure"]).spawn().expect("runs");
    thread::sleep(Duration::from_millis(300));
    append(&log, &fatal(0));
    let mut out = child.stdout.take().expect("piped");
    let line = until(&mut out, "\n");
    let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((event["kind"].as_str(), event["line"].as_u64()), (Some("torch.oom"), Some(9)));
    signal(&child, "INT");
    assert_eq!(end(child).status.code(), Some(0));
}

#[test]
fn events_tell_at_once_of_a_file_that_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let circle = folder.path().join("circle.log");
    std::os::unix::fs::symlink(&circle, &circle).expect("a link");
    let mut child = ncclog(&["events", "--follow", circle.to_str().expect("plain")]).spawn().expect("runs");
    let mut err = child.stderr.take().expect("piped");
    until(&mut err, "circle.log: cannot be looked at");
    signal(&child, "INT");
    assert_eq!(end(child).status.code(), Some(2));
}
