//! Every command that README and documentation show is run by a shell, in a folder with the files that they speak of.
//! None may be a wrong usage or fail for another reason than what the logs say.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const GOOD: &str = "fixtures/healthy-roce-bootstrap-on-eth0";
const BAD: &str = "fixtures/facts-tcp-with-an-hca-on-both-nodes";

/// Stand-ins for the programs of a cluster: they hand on what they are given.
const STAND_INS: [(&str, &str); 4] = [
    ("kubectl", "case \"$1\" in get) echo pod/train-0; echo pod/train-1;; logs) cat rank0.log;; esac"),
    ("srun", "while [ \"${1#--}\" != \"$1\" ]; do case \"$1\" in --jobid) shift;; esac; shift; done; exec \"$@\""),
    ("ssh", "shift; exec sh -c \"$*\""),
    ("jq", "cat > /dev/null"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All pages; the Chinese README shows the commands of the English one, which a test of its own holds it to.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root().join("docs")).expect("docs").map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    pages.extend(["README.md", "CONTRIBUTING.md", "examples/README.md", "fixtures/README.md"].map(|p| root().join(p)));
    pages.sort();
    pages
}

/// The lines of a page that a shell would run and that call ncclog.
fn commands(page: &str) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut list = Vec::new();
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let command = match fence {
            Some("console") => line.strip_prefix("$ "),
            Some("sh" | "bash" | "") => Some(line),
            _ => None,
        };
        list.extend(command.filter(|c| c.split([' ', '(', ';', '|', '"', '\'']).any(|w| w == "ncclog")).map(str::to_owned));
    }
    list
}

fn copy(from: &str, to: &Path, wanted: impl Fn(&str) -> bool) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(root().join(from)).expect(from).map(|e| e.expect("an entry")) {
        let name = entry.file_name().into_string().expect("UTF-8");
        if wanted(&name) {
            fs::copy(entry.path(), to.join(name)).expect("a copy");
        }
    }
}

/// The files that the pages speak of.
fn prepare(work: &Path) {
    let log = |name: &str| Path::new(name).extension().is_some_and(|e| e == "log");
    for folder in ["good", "good-run", "tmp/good"] {
        copy(GOOD, &work.join(folder), log);
    }
    for folder in ["", "bad", "logs", "tuesday", "tmp/logs"] {
        copy(BAD, &work.join(folder), log);
    }
    for (number, entry) in fs::read_dir(root().join(BAD)).expect(BAD).map(|e| e.expect("an entry").path()).enumerate() {
        if entry.extension().is_some_and(|e| e == "txt") {
            fs::copy(&entry, work.join(format!("facts.{number}.txt"))).expect("a copy");
            fs::copy(&entry, work.join(format!("node{number}.txt"))).expect("a copy");
        }
    }
    fs::copy(root().join("fixtures/p2p-iommu-page-fault/kernel.log"), work.join("dmesg.log")).expect("a copy");
    for name in ["tmp/nccl.a.1.log", "tmp/nccl.b.2.log"] {
        fs::copy(work.join("rank0.log"), work.join(name)).expect("a copy");
    }
    for folder in ["shared", "rack1", "public-parent", "home/job", "home/.local/share/bash-completion/completions", "bin"] {
        fs::create_dir_all(work.join(folder)).expect("a folder");
    }
    for (name, body) in STAND_INS {
        let path = work.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ncclog"), work.join("bin/ncclog")).expect("a link");
    std::os::unix::fs::symlink(root().join("fixtures"), work.join("fixtures")).expect("a link");
    for (target, source) in [("monday.digest", "good"), ("rack1/a.digest", "bad"), ("shared/a.digest", "bad"), ("job.digest", "bad")] {
        let made = Command::new(env!("CARGO_BIN_EXE_ncclog")).current_dir(work).args(["digest", source, "-o", target]).output().expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

/// What the line says, with folders of its own for those that belong to the machine. A command that follows a job is
/// ended after a moment, as a user would end it.
fn adapted(command: &str, work: &Path) -> String {
    let here = work.display();
    let line = command.replace("/tmp/", &format!("{here}/tmp/")).replace("/shared/", &format!("{here}/shared/"));
    line.replace("ncclog follow", "timeout --signal INT 2 ncclog follow").replace("man DIR", "man man-pages")
}

/// Runs the commands of a page: how many, and what went wrong.
fn run(page: &Path) -> (usize, String) {
    let text = fs::read_to_string(page).expect("UTF-8");
    // Ray has a test of its own.
    let list: Vec<String> = commands(&text).into_iter().filter(|c| !c.contains("ray_digest.py")).collect();
    let mut wrong = String::new();
    if list.is_empty() {
        return (0, wrong);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path();
    prepare(work);
    let path = format!("{}:{}", work.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    for command in &list {
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &adapted(command, work)]).current_dir(work).stdin(Stdio::null());
        shell.env("PATH", &path).env("HOME", work.join("home")).env("JOB", "7").env("LC_ALL", "C.UTF-8");
        let output = shell.output().expect("bash runs");
        let (said, code) = (String::from_utf8_lossy(&output.stderr), output.status.code());
        let complains = ["error:", "Usage:", "No such file"].iter().any(|w| said.contains(w));
        if complains || !matches!(code, Some(0 | 1 | 3 | 124 | 130)) {
            wrong += &format!("{}: {command}\n  {code:?} {said}\n", page.strip_prefix(root()).unwrap_or(page).display());
        }
    }
    (list.len(), wrong)
}

#[test]
fn every_command_of_the_documentation_runs() {
    let pages = pages();
    // Most of the time goes by waiting.
    let results: Vec<(usize, String)> = std::thread::scope(|scope| {
        let runs: Vec<_> = pages.iter().map(|p| scope.spawn(|| run(p))).collect();
        runs.into_iter().map(|r| r.join().expect("a page is run")).collect()
    });
    let wrong: String = results.iter().map(|(_, wrong)| wrong.as_str()).collect();
    assert!(wrong.is_empty(), "\n{wrong}");
    let count: usize = results.iter().map(|(count, _)| count).sum();
    assert!(count > 50, "only {count} commands were found");
}
