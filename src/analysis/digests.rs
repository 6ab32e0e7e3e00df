//! Digests among the inputs: reads them, and joins them with what was folded here.

use super::feed::fold_all;
use super::{Options, Problem, Progress};
use crate::digest::{Digest, Part, disk, union};
use crate::input::{self, Source};
use crate::job::Job;
use rayon::prelude::*;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// What the inputs hold.
#[derive(Debug, Default)]
pub struct Reading {
    /// The union of all streams.
    pub digest: Digest,
    /// Inputs that could not be read.
    pub problems: Vec<Problem>,
    /// What is to be said of the digests.
    pub notes: Vec<String>,
    /// Streams that were read here, not from a digest.
    pub folded: usize,
}

/// A digest that was met.
#[derive(Debug)]
pub struct Found {
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    /// Decoded from a pipe, a packed file or an archive; the stream that its reader had opened for it holds nothing.
    Bytes(usize, Vec<u8>),
}

impl Found {
    /// A file.
    pub fn file(path: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), place: Place::File(path.to_owned()) }
    }

    /// The bytes of a digest that came as stream number `stream`.
    pub fn packed(name: String, stream: usize, bytes: Vec<u8>) -> Self {
        Self { name, place: Place::Bytes(stream, bytes) }
    }

    fn read(&self) -> Result<disk::Packed, String> {
        let short = short(&self.name);
        let read = match &self.place {
            Place::File(path) => File::open(path).map_err(|e| format!("cannot be read ({e}); check its permissions")).map(|mut f| disk::read(&mut f, short)),
            Place::Bytes(_, bytes) => Ok(disk::read(&mut Cursor::new(bytes), short)),
        };
        read?.map_err(|e| e.to_string())
    }
}

/// Reads the inputs, logs and digests alike.
pub fn read(options: &Options, progress: &dyn Progress) -> Reading {
    let (mut folded, found, mut problems) = fold_all(options, progress);
    let wanted = options.patterns().map(crate::event::UserPatterns::set).unwrap_or_default();
    let void: Vec<usize> = found.iter().filter_map(|f| if let Place::Bytes(stream, _) = f.place { Some(stream) } else { None }).collect();
    leave_out(&mut folded, &void);
    let mut reading = Reading { folded: folded.streams.len(), ..Reading::default() };
    let mut parts = vec![Part::Folded(folded)];
    let results: Vec<(Found, Result<disk::Packed, String>)> = found.into_par_iter().map(|f| (f.read(), f)).map(|(r, f)| (f, r)).collect();
    for (found, result) in results {
        match result {
            Ok(mut packed) => {
                reading.notes.extend(patterns(&mut packed, &wanted, &found.name));
                parts.push(Part::Packed(packed));
            }
            Err(text) => problems.push(Problem { path: found.name, text }),
        }
    }
    let (digest, notes) = union(parts);
    reading.digest = Digest { patterns: wanted, ..digest };
    reading.notes.extend(notes);
    reading.problems = problems;
    reading
}

/// Joins digests; what is none is a problem.
pub fn merge(inputs: &[String]) -> Reading {
    let resolved = input::resolve(inputs);
    let mut reading = Reading { problems: resolved.problems, ..Reading::default() };
    let results: Vec<(String, Result<disk::Packed, String>)> = resolved.sources.into_par_iter().map(|s| (s.name(), open(&s))).collect();
    let mut parts: Vec<(String, disk::Packed)> = Vec::new();
    for (path, result) in results {
        match result {
            Ok(packed) => parts.push((path, packed)),
            Err(text) => reading.problems.push(Problem { path, text }),
        }
    }
    let first = parts.first().map(|(_, p)| p.patterns.clone()).unwrap_or_default();
    let common: Vec<(String, String)> = first.into_iter().filter(|w| parts.iter().all(|(_, p)| p.patterns.contains(w))).collect();
    for (name, packed) in &mut parts {
        let others = packed.patterns.iter().filter(|p| !common.contains(p)).count();
        packed.keep_patterns(&common);
        if others > 0 {
            reading.notes.push(format!("{name} was searched for {others} patterns of a user that others were not; what they matched is left out."));
        }
    }
    let (digest, notes) = union(parts.into_iter().map(|(_, p)| Part::Packed(p)).collect());
    reading.digest = Digest { patterns: common, ..digest };
    reading.notes.extend(notes);
    reading
}

/// Reads a digest, packed or not.
fn open(source: &Source) -> Result<disk::Packed, String> {
    let unreadable = |e: std::io::Error| format!("cannot be read ({e}); check that it is a file and that you may read it");
    let mut raw: Box<dyn Read> = match source {
        Source::Stdin => Box::new(std::io::stdin()),
        Source::File(path) => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut head = vec![0; 64];
    let n = input::read_up_to(&mut raw, &mut head).map_err(unreadable)?;
    head.truncate(n);
    let encoding = input::sniff(&head);
    let mut decoded = input::decoder(encoding, Box::new(Cursor::new(head).chain(raw))).map_err(unreadable)?;
    disk::read(&mut decoded, short(&source.name())).map_err(|e| e.to_string())
}

/// The file's own name.
fn short(name: &str) -> &str {
    name.rsplit(['/', '\\', '!']).next().unwrap_or(name)
}

/// Takes streams out that hold nothing.
fn leave_out(digest: &mut Digest, void: &[usize]) {
    if void.is_empty() {
        return;
    }
    let all = std::mem::take(digest);
    let (mut numbers, mut next) = (Vec::with_capacity(all.streams.len()), 0);
    for stream in 0..all.streams.len() {
        let kept = !void.contains(&stream);
        numbers.push(kept.then_some(next));
        next += u32::from(kept);
    }
    *digest = all.select(&numbers);
}

/// Holds a digest to the patterns in force; tells which of them it was not searched for.
fn patterns(packed: &mut disk::Packed, wanted: &[(String, String)], name: &str) -> Option<String> {
    let missing = wanted.iter().filter(|w| !packed.patterns.contains(w)).count();
    packed.keep_patterns(wanted);
    let which = if missing == wanted.len() { "your patterns".to_owned() } else { format!("{missing} of your patterns") };
    (missing > 0).then(|| format!("{name} was made without {which}: your rules see nothing of its logs there. Make it again with this configuration."))
}

/// Says so where only the logs could name the first difference.
pub fn too_old(job: &Job) -> Option<String> {
    let digested = |d: &crate::job::Divergence| {
        let members = d.sides.iter().filter_map(|s| s.members.first()).map(|m| &job.comms[d.comm].members[*m]);
        members.map(|m| job.comm_log(m).stream).any(|s| job.streams.get(s as usize).is_some_and(|s| !s.from.is_empty()))
    };
    let open = job.divergences.iter().any(|d| !d.is_exact() && digested(d));
    open.then(|| "The first differing collective lies before what a digest keeps of the calls; only an analysis of the logs themselves can name it.".to_owned())
}
