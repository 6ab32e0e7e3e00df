//! Throughput of each stage on a made-up log held in memory: `cargo bench --bench stages [-- --mb MB --runs N]`.
//!
//! One thread, no files: what is left is the work per byte.

#[path = "corpus/mod.rs"]
mod corpus;

use bumpalo::Bump;
use corpus::{Content, Corpus};
use ncclog::event;
use ncclog::line::records;
use std::hint::black_box;
use std::time::Instant;

/// Blocks of the size in which the program reads.
const BLOCK: usize = 2 << 20;

/// A stage under measurement: takes the log, gives what it found so that nothing is optimised away.
type Stage = fn(&[u8]) -> usize;

/// Every stage with those before it; a stage that joins the corridor becomes a row here.
const STAGES: [(&str, Stage); 2] = [("line", lines), ("line + event", events)];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // Without cargo's flag this is a test run: everything once, on little.
    let measured = args.iter().any(|a| a == "--bench");
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)?.parse::<u64>().ok());
    let bytes = value("--mb").unwrap_or(if measured { 128 } else { 1 }) * 1_000_000;
    let runs = value("--runs").unwrap_or(if measured { 7 } else { 1 }).max(1);

    println!("{:<12} {:<14} {:>9} {:>9} {:>11}", "log", "stage", "MB/s", "ns/line", "found");
    for (name, log) in logs(bytes) {
        let lines = memchr::memchr_iter(b'\n', &log).count();
        for (stage, run) in STAGES {
            let (seconds, found) = median(runs, run, &log);
            let rate = log.len() as f64 / 1e6 / seconds;
            println!("{name:<12} {stage:<14} {rate:>9.0} {:>9.0} {found:>11}", seconds * 1e9 / lines as f64);
        }
    }
}

/// The logs to measure on, each about `bytes` long.
fn logs(bytes: u64) -> Vec<(&'static str, Vec<u8>)> {
    let corpus = Corpus { ranks: 8, seed: 1, diverge: None, rccl: false };
    let write = |content: Content<'_>| {
        let mut log = Vec::new();
        corpus.rank(1, content, &mut log).expect("memory takes every write");
        log
    };
    let mut shared = Vec::new();
    corpus.interleaved(&corpus.plan(bytes / u64::from(corpus.ranks)), &mut shared).expect("memory takes every write");
    vec![("collectives", write(Content::Collectives(&corpus.plan(bytes)))), ("interleaved", shared), ("init", write(Content::Init(bytes)))]
}

/// Median time of `runs` runs, and what the last one found.
fn median(runs: u64, stage: Stage, log: &[u8]) -> (f64, usize) {
    let mut found = 0;
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            found = black_box(stage(black_box(log)));
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], found)
}

/// Records with a header.
fn lines(log: &[u8]) -> usize {
    let mut found = 0;
    for_blocks(log, |block, arena| {
        records(block, arena, |record| found += usize::from(record.header.is_some()));
    });
    found
}

/// Records that mean something.
fn events(log: &[u8]) -> usize {
    let mut found = 0;
    for_blocks(log, |block, arena| {
        records(block, arena, |record| found += usize::from(event::parse(&record).is_some()));
    });
    found
}

/// Cuts the log at line ends into blocks; the arena is emptied after each, as in the program.
fn for_blocks(log: &[u8], mut each: impl FnMut(&[u8], &Bump)) {
    let mut arena = Bump::new();
    let mut rest = log;
    while !rest.is_empty() {
        let cut = rest.get(..BLOCK).and_then(|head| memchr::memrchr(b'\n', head)).map_or(rest.len(), |at| at + 1);
        let (block, tail) = rest.split_at(cut);
        each(block, &arena);
        arena.reset();
        rest = tail;
    }
}
