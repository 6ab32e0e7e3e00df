//! Outputs as tools print them, read through the whole way from bytes to facts.

use super::*;
use crate::digest::{Folder, map};
use crate::input::Span;
use bumpalo::Bump;

/// The facts that a text shows; the text is also read in pieces of every odd size, which must not matter.
pub fn read(text: &str) -> Vec<HostFacts> {
    let whole = fold(text, text.len());
    for size in [1, 2, 3, 7] {
        assert_eq!(fold(text, size), whole, "cut every {size} lines");
    }
    whole
}

/// The facts of the only host.
pub fn one(text: &str) -> HostFacts {
    let mut hosts = read(text);
    assert_eq!(hosts.len(), 1, "{hosts:#?}");
    hosts.remove(0)
}

fn fold(text: &str, lines: usize) -> Vec<HostFacts> {
    let mut folder = Folder::new(0, "facts.txt".to_owned());
    let mut offset = 0;
    let pieces: Vec<&str> = text.split_inclusive('\n').collect();
    for piece in pieces.chunks(lines.max(1)) {
        let piece = piece.concat();
        let arena = Bump::new();
        let bytes = piece.len() as u64;
        folder.fold(&map(piece.as_bytes(), &arena), Span { offset, bytes, open_end: !piece.ends_with('\n'), closes_open_line: false });
        offset += bytes;
    }
    folder.finish(offset).0.facts
}

/// The text as a careless paste shows it: without indentation, runs of blanks as one.
pub fn collapsed(text: &str) -> String {
    text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// All the facts of the fixtures.
fn dumps() -> Vec<String> {
    let folders = std::fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path());
    let files = folders.filter_map(|f| std::fs::read_dir(f).ok()).flatten().filter_map(Result::ok).map(|e| e.path());
    files.filter(|p| p.extension().is_some_and(|x| x == "txt")).map(|p| std::fs::read_to_string(p).expect("text")).collect()
}

#[test]
fn torn_tables_never_panic_and_read_alike_however_they_are_cut() {
    for text in dumps() {
        for seed in 1..6_usize {
            // Bytes lost here and there, line ends among them.
            let torn: String = text.chars().enumerate().filter(|(i, _)| (i * 2_654_435_761 + seed * 97) % 61 >= seed).map(|(_, c)| c).collect();
            read(&torn);
        }
        read(&text.replace(' ', ""));
        read(&text.replace('\n', " "));
    }
}

#[test]
fn facts_are_bounded() {
    use std::fmt::Write;
    let mut text = String::new();
    for i in 0..400 {
        writeln!(text, "eth{i} UP 10.{}.{}.1/24\nlink mlx5_{i}/1 state ACTIVE physical_state LINK_UP netdev eth{i}", i / 256, i % 256).expect("a string takes all");
        writeln!(text, "mlx5_0 1 {i} 0000:0000:0000:0000:0000:ffff:0a00:{i:04x} 10.0.0.1 v2 eth0\nGPU {i}: NVIDIA X (UUID: GPU-{i})").expect("a string takes all");
    }
    let facts = one(&text);
    assert_eq!((facts.interfaces.len(), facts.hcas.len(), facts.gpus.len()), (MAX_INTERFACES, MAX_HCAS, MAX_GPUS));
    assert_eq!(facts.hcas.iter().flat_map(|h| &h.ports).map(|p| p.gids.len()).sum::<usize>(), MAX_GIDS);
    assert!(facts.dropped > 400, "{}", facts.dropped);
}

#[test]
fn a_host_without_tools_shows_that_it_has_no_device() {
    let text = "### ncclog-collect 1 host=vega time=2026-05-04T10:00:00Z\n### $ ibv_devices\n### missing\n### $ grep -sH . /sys/class/infiniband/*/ports/*/link_layer /sys/class/infiniband/*/ports/*/state\n### exit 2\n### $ ulimit -l\n64\n### exit 0\n";
    let facts = one(text);
    assert_eq!((facts.no_hca.map(|l| l.line), facts.memlock.map(|m| m.value)), (Some(4), Some(Limit::Value(65_536))));
}
