//! What packages install beside the binary: completions and manual pages.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn ncclog(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_ncclog")).args(arguments).output().expect("the binary runs")
}

/// A program of the machine, if it is there.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no {name} on the PATH");
    }
    found
}

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = String::from_utf8(ncclog(&["--help"]).stdout).expect("UTF-8");
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let names = list.lines().take_while(|l| l.starts_with("  ")).filter(|l| !l.starts_with("   "));
    names.filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn completions_know_the_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = ncclog(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).expect("UTF-8");
        for word in commands().iter().map(String::as_str).chain(["fail-on"]) {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    let wrong = ncclog(&["completions", "tcsh"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("powershell"), "the error lists the shells");
}

#[test]
fn bash_completes() {
    let Some(bash) = program("bash") else { return };
    let script = String::from_utf8(ncclog(&["completions", "bash"]).stdout).expect("UTF-8");
    let ask = "COMP_WORDS=(ncclog foll); COMP_CWORD=1; _ncclog ncclog foll ncclog; echo \"${COMPREPLY[@]}\"";
    let output = Command::new(bash).args(["--norc", "-c", &format!("{script}\n{ask}")]).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "follow", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("share/man/man1");
    let output = ncclog(&["man", target.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut wanted: Vec<String> = commands().iter().map(|c| format!("ncclog-{c}.1")).collect();
    wanted.push("ncclog.1".to_owned());
    wanted.sort();
    let mut pages: Vec<String> = fs::read_dir(&target).expect("made").map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    pages.sort();
    assert_eq!(pages, wanted);
    let main = fs::read_to_string(target.join("ncclog.1")).expect("a page");
    for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "\"EXIT STATUS\""] {
        assert!(main.contains(&format!(".SH {section}\n")), "no {section}");
    }
    let Some(mandoc) = program("mandoc") else { return };
    for page in pages {
        let lint = Command::new(&mandoc).args(["-T", "lint", "-W", "warning"]).arg(target.join(&page)).stdin(Stdio::null()).output().expect("mandoc runs");
        let said = String::from_utf8_lossy(&lint.stdout);
        let faults: Vec<&str> = said.lines().filter(|l| !l.contains("missing date")).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let output = ncclog(&["man", "Cargo.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("ncclog: Cargo.toml: "));
}
