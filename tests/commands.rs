//! What a log names enters the commands of a finding as one word that no shell takes apart: hosts, interfaces, HCAs and
//! values of settings are what somebody's machine, or somebody with bad intent, chose to print.

use ncclog::Analysis;
use ncclog::analysis::{Options, Silent, analyze, analyze_bytes};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// A command that no rule suggests.
const EVIL: &str = "';reboot;'";

/// Fields of messages that hold names of hosts, interfaces and devices.
const NAMES: [&str; 10] = ["hca", "device", "dev", "host", "node", "iface", "if", "interface", "net", "peer"];

/// The words that a job's logs chose: hosts, values of settings, names in messages.
fn names(analysis: &Analysis) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = analysis.job.hosts.iter().map(|h| h.name.clone()).collect();
    for proc in &analysis.job.procs {
        names.extend(proc.log.settings.keys().map(|s| s.value.clone()));
        let fields = proc.log.ledger.iter().flat_map(|e| &e.first.fields);
        names.extend(fields.filter(|(n, _)| NAMES.contains(&n.as_ref())).map(|(_, v)| v.clone()));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    // NCCL's own words are no names; numbers are read as numbers.
    let own = |n: &str| ["NET", "IB", "Socket", "RoCE", "INFO", "WARN", "TRACE", "ALL", "LOC", "PIX", "PXB", "PHB", "SYS"].contains(&n);
    names.retain(|n| n.len() > 2 && n.starts_with(|c: char| c.is_ascii_alphabetic()) && n.chars().all(word) && !own(n));
    names
}

/// `text` with [`EVIL`] behind each of `names`, wherever it stands as a word of its own.
fn poisoned(text: &str, names: &BTreeSet<String>) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
        out.push_str(&rest[..end]);
        if names.contains(&rest[..end]) {
            out.push_str(EVIL);
        }
        let next = rest[end..].chars().next().map_or(0, char::len_utf8);
        out.push_str(&rest[end..end + next]);
        rest = &rest[end + next..];
    }
    out
}

/// Whether a shell would run a part of [`EVIL`].
fn runs(command: &str) -> bool {
    let (mut quoted, mut escaped, mut before) = (false, false, ' ');
    for (at, c) in command.char_indices() {
        match c {
            _ if escaped => {}
            '\'' => quoted = !quoted,
            '#' if !quoted && before == ' ' => return false,
            _ if !quoted && command[at..].starts_with(";reboot") => return true,
            _ => {}
        }
        escaped = c == '\\' && !quoted && !escaped;
        before = c;
    }
    false
}

#[test]
fn the_scan_knows_quotes_and_comments() {
    assert!(runs("ethtool eth0;reboot;"));
    assert!(runs(&format!("ethtool 'eth0{EVIL}'")));
    assert!(!runs("ethtool 'eth0;reboot' | grep Speed"));
    assert!(!runs(r"ethtool 'eth0'\'';reboot;'\''' | grep Speed"));
    assert!(!runs(&format!("ethtool eth0   # not eth1{EVIL}")));
}

/// A poisoned copy of each fixture: (name and text of each file).
fn poisoned_fixtures() -> impl Iterator<Item = Vec<(String, String)>> {
    fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).map(|folder| {
        let files: Vec<_> = fs::read_dir(&folder).expect("a folder").filter_map(Result::ok).map(|e| e.path()).filter(|p| !p.ends_with("expect.json")).collect();
        let inputs = files.iter().map(|p| p.display().to_string()).collect();
        let names = names(&analyze(&Options { inputs, ..Options::default() }, &Silent).analysis);
        let text = |p: &std::path::PathBuf| poisoned(&String::from_utf8_lossy(&fs::read(p).expect("a log")), &names);
        files.iter().map(|p| (p.file_name().expect("a name").to_string_lossy().into_owned(), text(p))).collect()
    })
}

#[test]
fn names_of_a_log_stay_one_word() {
    let mut offenders = BTreeSet::new();
    let mut met = 0;
    for texts in poisoned_fixtures() {
        let logs: Vec<(&str, &[u8])> = texts.iter().map(|(n, t)| (n.as_str(), t.as_bytes())).collect();
        for finding in analyze_bytes(&logs).findings {
            let fixes = finding.fixes.iter().flat_map(|f| f.commands.iter().chain([&f.undo]));
            for command in fixes.chain(&finding.verify) {
                met += usize::from(command.contains(";reboot;"));
                if runs(command) {
                    offenders.insert(format!("{}: {command}", finding.id));
                }
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
    assert!(met > 30, "only {met} commands name anything");
}

#[test]
fn lines_to_be_evaluated_stay_lines() {
    let mut offenders = BTreeSet::new();
    let mut met = 0;
    let names_something = |texts: &Vec<(String, String)>| {
        let logs: Vec<(&str, &[u8])> = texts.iter().map(|(n, t)| (n.as_str(), t.as_bytes())).collect();
        analyze_bytes(&logs).findings.iter().flat_map(|f| &f.fixes).flat_map(|f| &f.commands).any(|c| c.contains(";reboot;"))
    };
    for texts in poisoned_fixtures().filter(names_something) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in &texts {
            fs::write(folder.path().join(name), text).expect("written");
        }
        for command in [&["fix"][..], &["fix", "--for", "slurm"]] {
            let output = Command::new(env!("CARGO_BIN_EXE_ncclog")).args(command).arg(folder.path()).output().expect("it runs");
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                met += usize::from(line.contains(";reboot;"));
                if runs(line) {
                    offenders.insert(format!("{command:?}: {line}"));
                }
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
    assert!(met > 30, "only {met} lines name anything");
}
