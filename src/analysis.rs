//! Wires input, line, event and digest over many files in parallel, then asks job and rules. There is one way to
//! compute a finding; `follow` folds and asks in the same way.
//!
//! Every worker takes the next block of any input, reads and parses it, and folds it when all earlier blocks of its
//! stream are folded. It has one buffer, so that memory does not grow with the input.

mod digests;
mod feed;
mod parse;
mod redacted;
mod refine;
mod walk;

use crate::digest::{Digest, Folder, Memory, map_with, name_apart};
use crate::event::UserPatterns;
use crate::expect::Expectations;
use crate::input::{self, Encoding, Span};
use crate::job::{Job, Vantage};
use crate::rules::{self, Analysis, User, Wishes};
use bumpalo::Bump;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

pub use crate::input::Problem;
pub use digests::{Reading, merge, read};
pub use redacted::{RedactedContext, all_evidence, redact_analysis, redact_digest};

/// What to analyse and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Files, directories, glob patterns or `-` for standard input.
    pub inputs: Vec<String>,
    /// Worker threads; 0 chooses the number of cores.
    pub threads: usize,
    /// Bytes of a block; 0 chooses the default. Does not change the result.
    pub block_size: usize,
    /// Most decoded bytes of one compressed input or pipe; 0 for no limit.
    pub max_bytes: u64,
    /// What the job is held to.
    pub expect: Expectations,
    /// Compressed files may be read a second time to name the first differing call; plain files always may.
    pub refine: bool,
    /// The user's own rules and silences.
    pub user: Option<Arc<User>>,
}

impl Options {
    fn patterns(&self) -> Option<&UserPatterns> {
        self.user.as_ref()?.patterns.as_ref()
    }
}

/// The analysis and what went wrong on the way.
#[derive(Debug)]
pub struct Outcome {
    /// What was found in the inputs that could be read.
    pub analysis: Analysis,
    /// Inputs that could not be read; exit code 2 if there is one.
    pub problems: Vec<Problem>,
}

/// Some input could not be read, or not wholly. What could be read was analysed.
#[derive(Debug, thiserror::Error)]
#[error("{}", .problems.iter().map(|p| format!("{}: {}", p.path, p.text)).collect::<Vec<_>>().join("; "))]
pub struct Incomplete {
    /// What was found in the rest.
    pub analysis: Box<Analysis>,
    /// What could not be read; at least one.
    pub problems: Vec<Problem>,
}

impl Outcome {
    /// The analysis, if all inputs could be read.
    pub fn complete(self) -> Result<Analysis, Incomplete> {
        if self.problems.is_empty() { Ok(self.analysis) } else { Err(Incomplete { analysis: Box::new(self.analysis), problems: self.problems }) }
    }
}

impl Analysis {
    /// Analyses files, directories of them and glob patterns, compressed or not, on all cores. [`analyze`] has options.
    ///
    /// ```no_run
    /// let analysis = ncclog::Analysis::from_paths(["logs/"])?;
    /// for finding in analysis.findings.iter().filter(|f| f.is_root()) {
    ///     println!("{}: {}", finding.id, finding.title);
    /// }
    /// # Ok::<(), ncclog::Incomplete>(())
    /// ```
    pub fn from_paths<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Result<Self, Incomplete> {
        let inputs = paths.into_iter().map(Into::into).collect();
        analyze(&Options { inputs, ..Options::default() }, &Silent).complete()
    }

    /// Analyses logs in memory: (name, content). A name may tell a rank (`rank3.log`), and evidence quotes it.
    ///
    /// ```
    /// let log = b"node1:7:9 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory errno 12\n";
    /// let analysis = ncclog::Analysis::from_bytes(&[("rank0.log", log)]);
    /// assert_eq!(analysis.findings[0].id, "memlock-limit");
    /// ```
    pub fn from_bytes(logs: &[(&str, &[u8])]) -> Self {
        analyze_bytes(logs)
    }
}

/// Receives progress while the inputs are read.
pub trait Progress: Sync {
    /// Total bytes, where known beforehand.
    fn total(&self, bytes: u64);
    /// Bytes read since the last call.
    fn advance(&self, bytes: u64);
}

/// No progress wanted.
pub struct Silent;

impl Progress for Silent {
    fn total(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// Reads and analyses the inputs.
pub fn analyze(options: &Options, progress: &dyn Progress) -> Outcome {
    conclude(read(options, progress), options)
}

/// Analyses what was read.
pub fn conclude(reading: Reading, options: &Options) -> Outcome {
    let Reading { mut digest, problems, notes, .. } = reading;
    name_apart(&mut digest.streams);
    let mut job = Job::build(digest, Vantage::PostMortem);
    // What a digest names lies on another machine, whatever stands under that name here.
    refine::refine(&mut job, &|job, stream, offset| job.streams.get(stream as usize).filter(|s| s.from.is_empty()).and_then(|s| reopen(&s.path, offset, options.refine)));
    let older = digests::too_old(&job);
    let mut analysis = rules::run_with(job, Wishes { user: options.user.as_deref(), expect: Some(&options.expect) });
    analysis.notes.extend(notes.into_iter().chain(older));
    Outcome { analysis, problems }
}

/// Analyses texts in memory: (name, content).
pub fn analyze_texts(texts: &[(&str, &str)]) -> Analysis {
    analyze_bytes(&texts.iter().map(|(name, text)| (*name, text.as_bytes())).collect::<Vec<_>>())
}

/// Analyses logs in memory: (name, content).
pub fn analyze_bytes(texts: &[(&str, &[u8])]) -> Analysis {
    let mut digest = Digest::default();
    for (i, (name, text)) in texts.iter().enumerate() {
        let arena = Bump::new();
        let parsed = map_with(text, &arena, None, Some(&mut Memory::default()));
        let mut folder = Folder::new(i as u32, (*name).to_owned());
        let bytes = text.len() as u64;
        folder.fold(&parsed, Span { offset: 0, bytes, open_end: text.last().is_some_and(|b| *b != b'\n'), closes_open_line: false });
        let (info, processes) = folder.finish(bytes);
        digest.streams.push(info);
        digest.processes.extend(processes);
    }
    let mut job = Job::build(digest, Vantage::PostMortem);
    refine::refine(&mut job, &|_, stream, offset| {
        let rest = texts.get(stream as usize)?.1.get(usize::try_from(offset).ok()?..)?;
        Some(Box::new(io::Cursor::new(rest.to_vec())))
    });
    rules::run(job)
}

/// Opens a file again at an offset of its decoded bytes.
fn reopen(path: &str, offset: u64, compressed: bool) -> Option<refine::Bytes> {
    let mut file = File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let mut head = vec![0; 64];
    let n = input::read_up_to(&mut file, &mut head).ok()?;
    let encoding = input::sniff(&head[..n]);
    if encoding == Encoding::Plain {
        file.seek(io::SeekFrom::Start(offset)).ok()?;
        return Some(Box::new(file));
    }
    file.rewind().ok()?;
    let mut decoded = if compressed { input::decoder(encoding, Box::new(file)).ok()? } else { return None };
    io::copy(&mut decoded.by_ref().take(offset), &mut io::sink()).ok()?;
    Some(decoded)
}

/// Reads the inputs into a digest.
pub fn digest(options: &Options, progress: &dyn Progress) -> (Digest, Vec<Problem>) {
    let Reading { digest, problems, .. } = read(options, progress);
    (digest, problems)
}
