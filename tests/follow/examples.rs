//! The launch scripts of `examples/`, run against commands that only write logs.

use crate::logs::start;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn command(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/usr/bin/env bash\n{script}")).expect("writes");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permits");
}

/// Runs a script whose job starts over `net`; returns its exit code and what it printed.
fn run(script: &str, net: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let (bin, logs) = (folder.path().join("bin"), folder.path().join("logs"));
    fs::create_dir(&bin).expect("creates");
    for rank in 0..4u32 {
        fs::write(folder.path().join(format!("start{rank}")), start(rank, 4, net).concat()).expect("writes");
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ncclog"), bin.join("ncclog")).expect("links");
    let start = format!("for r in 0 1 2 3; do sleep 0.1; cp {0}/start$r $LOGS/nccl.node.$r.log; done\n", folder.path().display());
    command(&bin, "ray", "exit 0\n");
    command(&bin, "vllm", &format!("{start}echo 'INFO 01-01 10:00:00 [gpu_model_runner.py:1] Starting to load model example...'\nsleep 1\n"));
    command(&bin, "srun", &format!("{start}sleep 1\n"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(script))
        .args(arguments)
        .current_dir(folder.path())
        .envs([("PATH", path.as_str()), ("HEAD_IP", "192.0.2.11"), ("TIMEOUT", "40s"), ("SLURM_NTASKS", "4")])
        .env("LOGS", &logs)
        .output()
        .expect("bash");
    let report = fs::read_to_string(logs.join("start.txt")).unwrap_or_default();
    (output.status.code(), format!("{}{}{report}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn vllm_serves_over_the_fabric_and_not_over_sockets() {
    let (code, text) = run("vllm-two-nodes.sh", "IB", &["example/model"]);
    assert!(code == Some(0) && text.contains("the start is good; serving"), "{code:?} {text}");
    let (code, text) = run("vllm-two-nodes.sh", "Socket", &["example/model"]);
    assert!(code == Some(1) && text.contains("expected net=IB"), "{code:?} {text}");
}

#[test]
fn slurm_steps_are_cancelled_unless_they_start_well() {
    let (code, text) = run("train.sbatch", "IB", &["train"]);
    assert!(code == Some(0) && text.contains("the start is good"), "{code:?} {text}");
    let (code, text) = run("train.sbatch", "Socket", &["train"]);
    assert!(code == Some(1) && text.contains("expected net=IB"), "{code:?} {text}");
}
