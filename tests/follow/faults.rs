//! A seeded sequence of faults under the follower: what it says at the end is what `analyze` says of all that was
//! written.

use crate::logs::{append, start};
use ncclog::analysis::analyze_bytes;
use ncclog::follow::{Extra, Follower};
use ncclog::report::json;
use ncclog::rules::{self, Analysis};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A rank that writes its log and meets faults.
struct Writer {
    path: PathBuf,
    lines: Vec<String>,
    /// Second half of a line, and the line.
    rest: Option<(String, String)>,
    /// The file was made since somebody looked.
    fresh: bool,
    /// Everything that a reader could have read.
    written: String,
}

impl Writer {
    fn write(&mut self, text: &str) {
        self.fresh |= !self.path.exists();
        append(&self.path, text);
        self.written.push_str(text);
    }

    /// One step; returns whether something is left.
    fn step(&mut self, dice: &mut Dice, look: &mut dyn FnMut()) -> bool {
        match (dice.roll(10), self.rest.take()) {
            (_, Some((rest, _))) if dice.roll(3) > 0 => self.write(&rest),
            // Cut short: what the reader has not seen would be gone.
            (0 | 1, rest) => {
                look();
                if self.path.exists() {
                    fs::File::options().write(true).open(&self.path).and_then(|f| f.set_len(0)).expect("there");
                }
                // The half is cut off from its rest; the writer begins the line again. Unseen, that were no change at all.
                if let Some((_, line)) = rest {
                    look();
                    self.lines.insert(0, line);
                }
                if !self.written.is_empty() && !self.written.ends_with('\n') {
                    self.written.push('\n');
                }
            }
            (2, None) if self.path.exists() => {
                if std::mem::take(&mut self.fresh) {
                    // What comes and goes between two looks was never there.
                    look();
                }
                let number = (1..1000).find(|n| !numbered(&self.path, *n).exists()).expect("a free number");
                fs::rename(&self.path, numbered(&self.path, number)).expect("renames");
            }
            (3, None) if self.path.exists() => {
                look();
                fs::remove_file(&self.path).expect("there");
            }
            (_, rest @ Some(_)) => self.rest = rest,
            (4, None) if !self.lines.is_empty() => {
                let line = self.lines.remove(0);
                let (half, rest) = line.split_at(1 + dice.roll(line.len() as u64 - 2) as usize);
                self.write(half);
                self.rest = Some((rest.to_owned(), line.clone()));
            }
            (_, None) if !self.lines.is_empty() => {
                let line = self.lines.remove(0);
                self.write(&line);
            }
            _ => {}
        }
        !self.lines.is_empty() || self.rest.is_some()
    }
}

fn numbered(path: &Path, n: u32) -> PathBuf {
    PathBuf::from(format!("{}.{n}", path.display()))
}

fn look(follower: &mut Follower) {
    follower.scan();
    follower.mark_all();
    while follower.read().more {}
}

/// The report without what a virtual line end shifts and without how it was read.
fn essence(analysis: &Analysis) -> String {
    let mut out = Vec::new();
    json::write(analysis, &mut out).expect("memory");
    let mut value: Value = serde_json::from_slice(&out).expect("JSON");
    strip(&mut value);
    serde_json::to_string_pretty(&value).expect("JSON")
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["offset", "bytes", "notes"] {
                map.remove(key);
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

fn play(seed: u64, whole_folder: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice(seed);
    let mut writers: Vec<Writer> = (0..4)
        .map(|rank| Writer {
            path: folder.path().join(format!("rank{rank}.log")),
            lines: start(rank, 4, if rank == 3 { "Socket" } else { "IB" }),
            rest: None,
            fresh: false,
            written: String::new(),
        })
        .collect();
    for writer in &writers {
        append(&writer.path, "");
    }
    let input = if whole_folder { folder.path().display().to_string() } else { folder.path().join("rank?.log").display().to_string() };
    let mut follower = Follower::new(&[input], Extra::default());
    look(&mut follower);
    loop {
        let mut left = false;
        for writer in &mut writers {
            left |= writer.step(&mut dice, &mut || look(&mut follower));
        }
        if dice.roll(2) == 0 {
            look(&mut follower);
        }
        if !left {
            break;
        }
    }
    look(&mut follower);
    let live = follower.analyze(Instant::now(), None, rules::run);
    let names: Vec<String> = writers.iter().map(|w| w.path.display().to_string()).collect();
    let texts: Vec<(&str, &[u8])> = names.iter().zip(&writers).map(|(n, w)| (n.as_str(), w.written.as_bytes())).collect();
    let (live, after) = (essence(&live), essence(&analyze_bytes(&texts)));
    let differs = live.lines().zip(after.lines()).position(|(a, b)| a != b).unwrap_or(0);
    let near = |text: &str| text.lines().skip(differs.saturating_sub(6)).take(9).collect::<Vec<_>>().join("\n");
    assert!(live == after, "seed {seed}, whole folder: {whole_folder}\nfollowed:\n{}\nanalysed:\n{}", near(&live), near(&after));
}

#[test]
fn nothing_is_lost_or_counted_twice() {
    for seed in 0..60 {
        play(seed, false);
        play(seed, true);
    }
}

#[test]
fn a_truncation_of_the_same_length_is_seen_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rank0.log");
    let lines = start(0, 2, "IB");
    fs::write(&path, lines[..4].concat()).expect("writes");
    let mut follower = Follower::new(&[path.display().to_string()], Extra::default());
    look(&mut follower);
    // The clock of a file system may tick slowly.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let other = lines[..4].concat().replace("4000", "4007");
    fs::write(&path, &other).expect("writes");
    look(&mut follower);
    let analysis = follower.analyze(Instant::now(), None, rules::run);
    assert_eq!(analysis.job.streams[0].lines, 8);
    assert!(analysis.notes.iter().any(|n| n.contains("began anew once") && n.contains("may be missing")), "{:?}", analysis.notes);
}

#[test]
fn a_folder_that_disappears_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).expect("creates");
    fs::write(logs.join("rank0.log"), start(0, 2, "IB").concat()).expect("writes");
    let mut follower = Follower::new(&[logs.display().to_string()], Extra::default());
    look(&mut follower);
    fs::remove_dir_all(&logs).expect("removes");
    look(&mut follower);
    fs::create_dir(&logs).expect("creates");
    fs::write(logs.join("rank1.log"), start(1, 2, "IB").concat()).expect("writes");
    look(&mut follower);
    let analysis = follower.analyze(Instant::now(), None, rules::run);
    assert_eq!(analysis.job.ranks.len(), 2);
    assert!(analysis.job.streams.iter().all(|s| s.problem.is_none() && s.lines == 8));
}

#[test]
fn an_unfinished_line_is_used_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rank0.log");
    let text = start(0, 2, "IB").concat();
    let (most, end) = text.trim_end().split_at(text.len() - 20);
    fs::write(&path, most).expect("writes");
    let mut follower = Follower::new(&[path.display().to_string()], Extra::default());
    look(&mut follower);
    let lines = |f: &mut Follower, whole: bool| {
        let d = f.digest(Instant::now(), whole);
        (d.streams[0].lines, d.streams[0].nccl_lines)
    };
    assert_eq!(lines(&mut follower, false), (7, 7), "its writer may be in the middle of it");
    assert_eq!(lines(&mut follower, true), (8, 8));
    append(&path, end);
    append(&path, "\n");
    look(&mut follower);
    assert_eq!(lines(&mut follower, false), (8, 8));
}
