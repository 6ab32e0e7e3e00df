//! Excerpts: the lines of a log that say something, each with the number that it had there.

use crate::digest::{Digest, Sample};
use crate::rules::{Analysis, Evidence};
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of all excerpts.
const MAX_BYTES: usize = 4 << 20;

/// Findings whose evidence is shown with the lines around it.
const MAX_FINDINGS: usize = 40;

/// Gives the lines around a piece of evidence with their numbers.
pub type Neighbours<'n> = dyn FnMut(&Evidence) -> Vec<(u64, String)> + 'n;

/// Lines by file and number.
#[derive(Debug, Default)]
pub struct Excerpts {
    lines: BTreeMap<String, BTreeMap<u64, String>>,
    bytes: usize,
    /// Lines that found no room.
    pub over_bound: u64,
}

impl Excerpts {
    /// Takes what is most telling first: the evidence with its surroundings, then all records of the digest.
    pub fn new(analysis: &Analysis, digest: &Digest, around: &mut Neighbours<'_>) -> Self {
        let mut out = Self::default();
        for (number, finding) in analysis.findings.iter().enumerate() {
            for evidence in &finding.evidence {
                out.add(&evidence.file, evidence.line, &evidence.text);
                let near = if number < MAX_FINDINGS { around(evidence) } else { Vec::new() };
                for (line, text) in &near {
                    out.add(&evidence.file, *line, text);
                }
            }
        }
        for unknown in &analysis.unknown {
            out.add(&unknown.evidence.file, unknown.evidence.line, &unknown.evidence.text);
        }
        out.records(digest);
        out
    }

    /// The start of every stream is what a reader needs first: versions, settings, devices.
    fn records(&mut self, digest: &Digest) {
        let mut seen: BTreeSet<(u32, u64)> = BTreeSet::new();
        let mut take = |sample: &Sample| {
            let at = sample.at;
            if let Some(stream) = digest.streams.get(at.stream as usize)
                && seen.insert((at.stream, at.line))
            {
                self.add(&stream.path, at.line, &sample.text);
            }
        };
        for process in &digest.processes {
            process.each_sample(&mut |sample| take(sample));
        }
        digest.streams.iter().filter_map(|s| s.last.as_ref()).for_each(|s| take(s));
    }

    fn add(&mut self, file: &str, line: u64, text: &str) {
        let lines = self.lines.entry(file.to_owned()).or_default();
        if lines.contains_key(&line) {
            return;
        }
        if self.bytes >= MAX_BYTES {
            self.over_bound += 1;
            return;
        }
        self.bytes += text.len() + 16;
        lines.insert(line, text.trim_end_matches(['\n', '\r']).replace(['\n', '\r'], " "));
    }

    /// How many lines they hold.
    pub fn len(&self) -> u64 {
        self.lines.values().map(|l| l.len() as u64).sum()
    }

    /// No line at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The members: one a log, in Markdown, so that no analysis takes them for logs.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut used = BTreeSet::new();
        self.lines.iter().filter(|(_, lines)| !lines.is_empty()).map(|(path, lines)| (member(path, &mut used), page(path, lines))).collect()
    }
}

fn page(path: &str, lines: &BTreeMap<u64, String>) -> String {
    let longest = lines.values().map(|l| l.split(|c| c != '`').map(str::len).max().unwrap_or(0)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let width = lines.keys().next_back().map_or(1, |n| n.to_string().len());
    let mut out = format!("{path}\n\n{fence}text\n");
    let mut before = 0;
    for (number, text) in lines {
        if *number > before + 1 {
            out.push_str("…\n");
        }
        out.push_str(&format!("{number:>width$}  {text}\n"));
        before = *number;
    }
    out + &fence + "\n"
}

/// A name that says where the lines come from and leads nowhere.
fn member(path: &str, used: &mut BTreeSet<String>) -> String {
    let plain: String =
        path.rsplit(['/', '\\']).next().unwrap_or(path).chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '!') { c } else { '_' }).take(80).collect();
    let stem = if plain.chars().all(|c| matches!(c, '.' | '-')) { "input".to_owned() } else { plain };
    let mut name = format!("excerpts/{stem}.md");
    let mut number = 2;
    while !used.insert(name.clone()) {
        name = format!("excerpts/{stem}.{number}.md");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_and_cannot_leave_their_fence() {
        let lines = BTreeMap::from([(7, "a".to_owned()), (8, "```` b".to_owned()), (120, "c".to_owned())]);
        assert_eq!(page("x.log", &lines), "x.log\n\n`````text\n…\n  7  a\n  8  ```` b\n…\n120  c\n`````\n");
        let mut used = BTreeSet::new();
        let names = ["a/rank0.log", "b/rank0.log", "../..", "-"].map(|p| member(p, &mut used));
        assert_eq!(names, ["excerpts/rank0.log.md", "excerpts/rank0.log.2.md", "excerpts/input.md", "excerpts/input.2.md"]);
    }
}
