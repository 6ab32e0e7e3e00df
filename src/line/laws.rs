//! Laws of the stage, held on generated blocks: the fast path and the reference grammar agree, no bytes panic, every
//! line end is counted, a cut at a line end changes nothing, CRLF equals LF.

use super::records::cut;
use super::{Record, records};
use bumpalo::Bump;
use proptest::prelude::*;

/// Heads, wrappers and bodies that lines are built from.
const HEADS: [&str; 16] = [
    "node1:77:78 [1] NCCL INFO ",
    "node1:77:79 [0] NCCL INFO ",
    "node2:7:7 [3] NCCL INFO ",
    "node1:77:78 [1] init.cc:7 NCCL WARN ",
    "[2026-11-30 15:30:44] node1:77:78 [1] init.cc:7 (ncclCommInitRank) NCCL WARN ",
    "node1:77:77 NCCL CALL ",
    "node1:77:77 [0] [FATAL ERROR]: ",
    "node1:77:77 [0] INFO ",
    "[0] NCCL INFO ",
    "NCCL INFO ",
    "NCCL version 2.27.3+cuda12.9",
    "RCCL version : 2.22.3-HEAD:271856d",
    "",
    "",
    "RuntimeError: ",
    "77 [0] NCCL INFO ",
];
const WRAPS: [&str; 19] = [
    "\u{feff}",
    "",
    "",
    "",
    "(RayWorkerWrapper pid=2981, ip=10.0.0.2) ",
    "\u{1b}[36m(Worker_TP0 pid=7)\u{1b}[0m ",
    "[rank3]: ",
    "[1,12]<stdout>:",
    "  7: ",
    "node1: ",
    "2026-05-05T06:00:00.000000000Z ",
    "[2026-05-05 06:00:00] ",
    "May 05 06:00:00 node1 torchrun[7]: ",
    "worker-1  | ",
    "> ",
    "Epoch 3:   5%|#  | 200/4000 [00:05<01:12, 38.21it/s, loss=2.05]",
    "[0m ",
    "INFO 11-30 12:00:00 [pynccl.py:69] ",
    "12:",
];
const BODIES: [&str; 14] = [
    "Using network IB",
    "Bootstrap : Using eth0:10.0.0.1<0>",
    "comm 0x1 rank 0 nranks ",
    "NCCL version 2.27.3+cuda12.9",
    "a\\nnode1:77:78 [1] NCCL INFO b",
    "10.0.0.1:4791",
    " [repeated 5x across cluster]",
    "{\"log\":\"node1:1:1 [0] NCCL INFO x\\n\",\"stream\":\"stderr\"}",
    "",
    "|",
    " NCCL WARN ",
    "caf\u{e9} \u{2588}",
    "[0] INFO Ring 00 : 0 -> 1",
    "Mon Jan 5",
];

fn line() -> impl Strategy<Value = Vec<u8>> {
    let pick = |from: &'static [&'static str]| prop::sample::select(from).prop_map(|s| s.as_bytes().to_vec());
    let noise = prop::collection::vec(prop_oneof![3 => prop::sample::select(&b"NCL :[]0a{\"\\|>("[..]), 1 => any::<u8>()], 0..12);
    let part = prop_oneof![2 => pick(&WRAPS), 4 => pick(&HEADS), 4 => pick(&BODIES), 1 => noise];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat().into_iter().filter(|b| *b != b'\n').collect())
}

fn block() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(line(), 0..12)
}

/// A record without borrowed text, and with its position in a larger stream.
fn owned(record: &Record<'_>, line: u32, offset: usize, crlf: bool) -> (u32, usize, Vec<u8>, String) {
    let text = if crlf { Vec::new() } else { record.text.to_vec() };
    let rest = format!("{:?} {:?} {:?} {} {}", record.wrap, record.header, record.msg, record.torn_start, record.torn_end);
    (record.line + line, record.offset as usize + offset, text, rest)
}

proptest! {
    #[test]
    fn fast_path_is_the_reference_grammar(lines in block()) {
        let text = lines.join(&b'\n');
        let arena = Bump::new();
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        let counts = (cut(&text, &arena, true, |r| fast.push(r)), cut(&text, &arena, false, |r| slow.push(r)));
        prop_assert_eq!(counts.0, counts.1);
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn any_bytes_are_read_and_every_line_end_is_counted(text in prop::collection::vec(any::<u8>(), 0..400)) {
        let arena = Bump::new();
        let ends = memchr::memchr_iter(b'\n', &text).count();
        prop_assert_eq!(records(&text, &arena, |_| {}) as usize, ends);
    }

    #[test]
    fn a_cut_at_a_line_end_changes_nothing(lines in block(), at in 0usize..12) {
        let at = at.min(lines.len());
        let join = |lines: &[Vec<u8>]| lines.iter().flat_map(|l| l.iter().copied().chain([b'\n'])).collect::<Vec<u8>>();
        let (left, right) = (join(&lines[..at]), join(&lines[at..]));
        let whole = [left.clone(), right.clone()].concat();
        let arena = Bump::new();
        let (mut one, mut two) = (Vec::new(), Vec::new());
        records(&whole, &arena, |r| one.push(owned(&r, 0, 0, false)));
        let ends = records(&left, &arena, |r| two.push(owned(&r, 0, 0, false)));
        records(&right, &arena, |r| two.push(owned(&r, ends, left.len(), false)));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn crlf_is_lf(lines in block()) {
        let lines: Vec<Vec<u8>> = lines.into_iter().map(|l| l.into_iter().filter(|b| *b != b'\r').collect()).collect();
        let arena = Bump::new();
        let (mut unix, mut dos) = (Vec::new(), Vec::new());
        let (lf, crlf) = (lines.join(&b'\n'), lines.join(&b"\r\n"[..]));
        records(&lf, &arena, |r| unix.push((r.line, r.text, r.wrap, r.header, r.msg)));
        records(&crlf, &arena, |r| dos.push((r.line, r.text, r.wrap, r.header, r.msg)));
        prop_assert_eq!(unix, dos);
    }
}

#[test]
fn hostile_long_lines_stay_cheap() {
    let arena = Bump::new();
    for part in ["NCCL INFO ", "[rank] ", "\\n'", "a:1:1 [0] NCCL INFO ", "[0m", "> ", "{\"", "(a pid=", "%|", "\r", "\0", "[1] [1] "] {
        let mut text = part.repeat(super::MAX_LINE / part.len());
        text.push_str(&" ".repeat(200));
        let start = std::time::Instant::now();
        records(text.as_bytes(), &arena, |_| {});
        assert!(start.elapsed().as_secs() < 3, "{part:?} took {:?}", start.elapsed());
    }
}

#[test]
fn an_over_long_line_keeps_its_head() {
    let arena = Bump::new();
    let text = format!("node1:1:1 [0] NCCL INFO {}\nnext\n", "x".repeat(super::MAX_LINE));
    let mut got = Vec::new();
    let ends = records(text.as_bytes(), &arena, |r| got.push((r.line, r.text.len(), r.header.is_some(), r.torn_end)));
    assert_eq!((ends, got), (2, vec![(0, super::MAX_LINE, true, true), (1, 4, false, false)]));
}
