//! Exit codes of the gate and of expectations.

use crate::logs::{append, end, fatal, ncclog, start, texts};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

fn write_start(folder: &Path, ranks: u32, net: &str) {
    for rank in 0..ranks {
        fs::write(folder.join(format!("rank{rank}.log")), start(rank, 4, net).concat()).expect("writes");
    }
}

#[test]
fn ready_as_soon_as_the_last_rank_is() {
    let folder = tempfile::tempdir().expect("a folder");
    write_start(folder.path(), 3, "IB");
    let child = ncclog(&["follow", folder.path().to_str().expect("plain"), "--until", "ready", "--timeout", "50s", "--expect", "net=IB"]).spawn().expect("runs");
    thread::sleep(Duration::from_millis(500));
    for line in start(3, 4, "IB") {
        append(&folder.path().join("rank3.log"), &line);
        thread::sleep(Duration::from_millis(20));
    }
    let output = end(child);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.starts_with("HEALTHY"), "{out}");
}

#[test]
fn one_for_an_error_or_a_violated_expectation() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain");
    write_start(folder.path(), 2, "Socket");
    let output = end(ncclog(&["follow", path, "--until", "ready", "--timeout", "50s", "--expect", "net=IB"]).spawn().expect("runs"));
    let (out, _) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("expected net=IB, but the log shows Socket"), "{out}");
    let folder = tempfile::tempdir().expect("a folder");
    write_start(folder.path(), 2, "IB");
    append(&folder.path().join("rank1.log"), &fatal(1));
    let output = end(ncclog(&["follow", folder.path().to_str().expect("plain"), "--until", "ready", "--timeout", "50s"]).spawn().expect("runs"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn three_when_time_runs_out_with_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain");
    write_start(folder.path(), 3, "IB");
    let output = end(ncclog(&["follow", path, "--until", "ready", "--timeout", "1s", "--format", "json"]).spawn().expect("runs"));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(3));
    assert!(report["notes"].to_string().contains("3 of 4 ranks are Init COMPLETE"), "{}", report["notes"]);
    write_start(folder.path(), 4, "IB");
    let output = end(ncclog(&["follow", path, "--until", "collective", "--timeout", "1s", "--format", "json"]).spawn().expect("runs"));
    assert_eq!(output.status.code(), Some(3));
    assert!(texts(&output).0.contains("NCCL logs only that one was enqueued"));
    // What nobody can see yet is not taken for granted.
    let output = end(ncclog(&["follow", path, "--until", "ready", "--timeout", "1s", "--expect", "p2p=P2P/CUMEM", "--format", "json"]).spawn().expect("runs"));
    assert_eq!(output.status.code(), Some(3));
    assert!(texts(&output).0.contains("NCCL_DEBUG_SUBSYS=INIT,P2P,SHM"));
}

#[test]
fn expectations_of_analyze_files_and_mistakes() {
    let folder = tempfile::tempdir().expect("a folder");
    write_start(folder.path(), 4, "IB");
    let run = |args: &[&str]| {
        let output = ncclog(args).current_dir(folder.path()).output().expect("runs");
        (output.status.code(), texts(&output))
    };
    let logs = ["rank0.log", "rank1.log", "rank2.log", "rank3.log"];
    let analyze = |more: &[&str]| run(&[&["analyze"], &logs[..], more].concat());
    assert_eq!(
        analyze(&["--expect", "net=IB", "--expect", "hca=mlx5_*", "--expect", "link=roce", "--expect", "gdr=on", "--expect", "nranks=4", "--expect", "version=2.21.*"]).0,
        Some(0)
    );
    for wrong in ["net=Socket", "hca=mlx5_1", "link=IB", "gdr=off", "nranks=8", "nnodes=1", "version=2.27.3", "no-interface=docker0,eth*"] {
        let (code, (out, _)) = analyze(&["--expect", wrong]);
        assert_eq!(code, Some(1), "{wrong}: {out}");
        assert!(out.contains("expectation-failed"), "{wrong}: {out}");
    }
    let (code, (_, err)) = analyze(&["--expect", "nrank=4"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("did you mean nranks?"), "{err}");
    // A good run teaches what to hold the next one to.
    let (code, (table, _)) = run(&[&["expect", "--from"], &logs[..]].concat());
    assert_eq!(code, Some(0));
    assert!(table.contains("net = \"IB\"") && table.contains("nranks = 4") && table.contains("hca = \"mlx5_0\""), "{table}");
    fs::write(folder.path().join("ncclog.toml"), &table).expect("writes");
    assert_eq!(analyze(&[]).0, Some(0));
    fs::write(folder.path().join("ncclog.toml"), "[expect]\nhca = \"mlx5_0\"\n[expect.host.node2]\nhca = \"mlx5_9\"\n").expect("writes");
    let (code, (out, _)) = analyze(&["--format", "json"]);
    assert_eq!(code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["findings"][0]["hosts"], serde_json::json!(["node2"]));
    assert!(report["findings"][0]["evidence"][0]["text"].as_str().expect("a line").contains("NET/IB : Using"));
}

#[test]
fn silence_in_the_start_is_a_stall_and_a_model_load_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain");
    for rank in 0..4u32 {
        let lines = start(rank, 4, "IB");
        let kept = if rank == 2 { 5 } else { 6 };
        fs::write(folder.path().join(format!("rank{rank}.log")), lines[..kept].concat()).expect("writes");
    }
    let output = end(ncclog(&["follow", path, "--stall", "1s", "--until", "ready", "--timeout", "4s"]).spawn().expect("runs"));
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(3));
    assert!(out.starts_with("STALLED") && err.contains("stall"), "{out}{err}");
    write_start(folder.path(), 4, "IB");
    let output = end(ncclog(&["follow", path, "--stall", "1s", "--until", "collective", "--timeout", "4s"]).spawn().expect("runs"));
    let (out, err) = texts(&output);
    assert!(!err.contains("stall") && out.starts_with("HEALTHY"), "{out}{err}");
}
