//! Digests made where the logs lie: a Ray cluster of three nodes on this machine, each with logs of its own; and the
//! other recipes of docs/clusters.md as far as they can be read here.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interpreter of the environment that `.ci/run` makes, if it has `module`.
fn python(module: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/ray-venv/bin/python");
    let has = own.exists() && std::process::Command::new(&own).args(["-c", &format!("import {module}")]).output().is_ok_and(|o| o.status.success());
    if !has {
        eprintln!("SKIPPED: target/ray-venv has no {module}; `.ci/ray` makes it where PyPI can be reached");
    }
    has.then_some(own)
}

fn report(inputs: &[String]) -> Value {
    let done = Command::cargo_bin("ncclog").expect("the binary").args(["analyze", "--format", "json", "--fail-on", "never"]).args(inputs).assert().code(0);
    serde_json::from_slice(&done.get_output().stdout).expect("JSON")
}

#[test]
fn a_ray_job_digests_where_the_logs_lie() {
    let Some(python) = python("ray") else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut logs = Vec::new();
    for node in 0..3 {
        fs::create_dir(dir.path().join(format!("node{node}"))).expect("folder");
    }
    let mut sources: Vec<PathBuf> = fs::read_dir("fixtures/healthy-8gpu-nvls").expect("fixture").filter_map(Result::ok).map(|e| e.path()).collect();
    sources.retain(|p| p.extension().is_some_and(|e| e == "log"));
    sources.sort();
    assert!(sources.len() >= 3);
    for (i, source) in sources.iter().enumerate() {
        let target = dir.path().join(format!("node{}", i % 3)).join(source.file_name().expect("named"));
        fs::copy(source, &target).expect("copied");
        logs.push(target.display().to_string());
    }
    let output = dir.path().join("job.digest");
    let program = assert_cmd::cargo::cargo_bin("ncclog");
    let mut job = Command::new(python);
    job.arg("tests/ray/cluster.py").arg(program).arg(&output).args((0..3).map(|n| dir.path().join(format!("node{n}"))));
    job.env("RAY_USAGE_STATS_ENABLED", "0").timeout(Duration::from_secs(300)).assert().code(0);
    assert_eq!(report(&[output.display().to_string()]), report(&logs));
}

#[test]
fn the_manifest_is_a_job_with_one_pod_a_node() {
    let Some(python) = python("yaml") else { return };
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open('examples/digest-job.yaml')))))";
    let done = Command::new(python).args(["-c", script]).assert().code(0);
    let documents: Value = serde_json::from_slice(&done.get_output().stdout).expect("JSON");
    let job = &documents[0];
    assert_eq!((documents.as_array().map(Vec::len), &job["kind"], &job["apiVersion"]), (Some(1), &"Job".into(), &"batch/v1".into()));
    let spec = &job["spec"];
    assert_eq!((&spec["completionMode"], &spec["parallelism"]), (&"Indexed".into(), &spec["completions"]));
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(apart["labelSelector"]["matchLabels"], spec["template"]["metadata"]["labels"]);
    let container = &pod["containers"][0];
    let mounts: Vec<&str> = container["volumeMounts"].as_array().expect("mounts").iter().filter_map(|m| m["name"].as_str()).collect();
    let volumes: Vec<&str> = pod["volumes"].as_array().expect("volumes").iter().filter_map(|v| v["name"].as_str()).collect();
    assert_eq!(mounts, volumes);
    shell(container["args"][0].as_str().expect("a script"));
}

/// A shell takes the text.
fn shell(text: &str) {
    Command::new("sh").arg("-n").write_stdin(text).assert().code(0).stderr("");
}

#[test]
fn the_recipes_are_shell() {
    let page = fs::read_to_string("docs/clusters.md").expect("the page");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).filter_map(|b| b.split("```").next()).collect();
    assert!(blocks.len() >= 5 && page.contains("srun"));
    blocks.into_iter().for_each(shell);
}

/// The command that the Slurm recipe runs on each node, by a shell as Slurm would.
#[test]
fn the_slurm_recipe_writes_a_digest() {
    let page = fs::read_to_string("docs/clusters.md").expect("the page");
    let line = page.lines().find(|l| l.contains("srun --overlap")).expect("the recipe");
    let command = line.split("sh -c '").nth(1).and_then(|l| l.split('\'').next()).expect("its command");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let home = dir.path().display().to_string();
    fs::create_dir(dir.path().join("job")).expect("folder");
    fs::write(dir.path().join("nccl.a.log"), "node1:7:7 [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n").expect("writable");
    let folder = assert_cmd::cargo::cargo_bin("ncclog").parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    Command::new("sh").args(["-c", &command.replace("/tmp/", &format!("{home}/"))]).env("HOME", &home).env("PATH", path).assert().code(0);
    let json = report(&[dir.path().join("job").display().to_string()]);
    assert_eq!(json["job"]["versions"][0], "2.27.7+cuda12.9");
}
