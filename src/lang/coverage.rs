//! The catalogue keeps up with the rules: what the founding causes write is translated, and what is translated is
//! written by some rule.

use super::catalogue::{REMARK, Table};
use super::pattern::places;
use super::zh;
use crate::rules::tree::LEAVES;
use std::collections::BTreeSet;
use std::path::Path;

/// All sources below `folder` but tests, as one text.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for entry in std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{folder}: {e}")).map(|e| e.expect("an entry").path()) {
        let name = entry.file_name().expect("named").to_string_lossy().into_owned();
        if entry.is_dir() {
            text += &sources(&format!("{folder}/{name}"));
        } else if entry.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            let source = std::fs::read_to_string(&entry).expect("UTF-8");
            text += source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        }
    }
    text
}

/// The string literals of a source, as the compiler reads them.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in source.lines().map(str::trim_start).filter(|l| !l.starts_with("//")) {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                // A character may be a quote itself.
                '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
                '"' => found.push(literal(&mut chars)),
                _ => {}
            }
        }
    }
    found
}

fn literal(chars: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

/// The part of a literal that is prose: all of it, or the remark of a command. `None` for names, commands, and what a
/// log says.
fn prose(literal: &str) -> Option<&str> {
    const COMMANDS: [&str; 28] = [
        "export",
        "unset",
        "grep",
        "apt-get",
        "ls",
        "docker",
        "ldd",
        "fi_info",
        "sudo",
        "rdma",
        "ip",
        "ethtool",
        "ib_write_bw",
        "ibv_devinfo",
        "cd",
        "IF",
        "ibstat",
        "cat",
        "for",
        "nvidia-smi",
        "show_gids",
        "rocm-smi",
        "rocminfo",
        "RX",
        "AI",
        "NET",
        "via",
        "Init",
    ];
    if let Some((_, remark)) = literal.split_once(REMARK) {
        return Some(remark);
    }
    if let Some(remark) = literal.strip_prefix("# ") {
        return Some(remark.trim_start());
    }
    let first = literal.split([' ', '=', '/']).next().unwrap_or_default();
    let bare: String = literal.split('{').map(|p| p.split_once('}').map_or(p, |(_, rest)| rest)).collect();
    let words = bare.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| w.len() > 1).count();
    (literal.contains(' ') && words > 0 && !COMMANDS.contains(&first)).then_some(literal)
}

fn keys(tables: &[Table]) -> BTreeSet<&'static str> {
    tables.iter().flat_map(|t| t.texts.iter().chain(t.phrases)).map(|(english, _)| *english).collect()
}

/// Sentences of one literal may be translated one by one; nothing but places may be left.
fn consists_of(text: &str, keys: &BTreeSet<&str>) -> bool {
    if keys.contains(text) {
        return true;
    }
    let mut whole: Vec<&&str> = keys.iter().filter(|k| k.len() > 20 || k.starts_with('{')).collect();
    whole.sort_by_key(|k| std::cmp::Reverse(k.len()));
    let left = whole.iter().fold(text.to_owned(), |left, k| left.replace(**k, ""));
    left.split('{').map(|p| p.split_once('}').map_or(p, |(_, rest)| rest)).all(|p| p.trim().is_empty())
}

#[test]
fn every_text_of_a_founding_cause_is_translated() {
    /// What is compared with a log's text, the summaries (they have a table of their own), and errors of the system.
    const NOT_PRINTED: [&str; 24] = [
        "Connection timed out",
        "Invalid argument",
        "No such device",
        "No data available",
        "Network is unreachable",
        "No route to host",
        "Cannot allocate memory",
        "Permission denied",
        "Device or resource busy",
        "Input/output error",
        "Operation not permitted",
        "No such file",
        "7900 XT",
        "amdgpu ",
        "RDMA was chosen, but its queue pairs cannot be connected or die: GID, MTU or link.",
        "Nodes exchange data over TCP instead of RDMA.",
        "GPUs of one machine hang because the IOMMU or ACS blocks their direct P2P transfers.",
        "Several Radeon cards hang or fault under RCCL.",
        // Beginnings of titles.
        "Let the IOMMU",
        "the IOMMU",
        // Placeholders in commands.
        "netdev {i}",
        "<interface of the fabric>",
        "<its HCA>",
        "Switch ACS off",
    ];
    let mut missing = Vec::new();
    for (id, own) in zh::TABLES.iter().filter(|(id, _)| LEAVES.iter().any(|l| l.cause == *id)) {
        let known = keys(&[*own, zh::COMMON]);
        for text in literals(&sources(&format!("src/rules/{}", id.replace('-', "_")))) {
            if let Some(prose) = prose(&text)
                && !consists_of(prose, &known)
                && !NOT_PRINTED.contains(&prose)
            {
                missing.push(format!("{id}: {prose}"));
            }
        }
    }
    let tables: Vec<Table> = zh::TABLES.iter().map(|(_, t)| *t).chain([zh::COMMON]).collect();
    let shared = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/facts.rs")).expect("the facts that founding causes share");
    let known = keys(&tables);
    missing.extend(literals(&shared).iter().filter_map(|t| prose(t)).filter(|t| !consists_of(t, &known)).map(str::to_owned));
    assert!(missing.is_empty(), "not translated:\n{}", missing.join("\n"));
}

#[test]
fn every_translation_is_of_a_text_that_is_written() {
    let written = literals(&(sources("src/rules") + &sources("src/job")));
    let tables: Vec<Table> = zh::TABLES.iter().map(|(_, t)| *t).chain([zh::COMMON, zh::TITLES, zh::NOTES]).collect();
    let stale: Vec<&str> = keys(&tables).into_iter().filter(|k| !written.iter().any(|w| w.contains(k))).collect();
    assert!(stale.is_empty(), "nobody writes:\n{}", stale.join("\n"));
}

#[test]
fn every_place_is_filled() {
    let tables = zh::TABLES.iter().map(|(_, t)| *t).chain([zh::COMMON, zh::TITLES, zh::NOTES]);
    for (english, chinese) in tables.flat_map(|t| t.texts.iter().chain(t.phrases).copied().collect::<Vec<_>>()) {
        let (wanted, given) = places(english, chinese);
        assert_eq!(wanted, given, "{english}\n{chinese}");
    }
}
