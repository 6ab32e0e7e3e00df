//! Wires input, line, event and digest over many files in parallel, then asks job and rules. There is one way to
//! compute a finding; `follow` folds and asks in the same way.
//!
//! Every worker takes the next block of any input, reads and parses it, and folds it when all earlier blocks of its
//! stream are folded. It has one buffer, so that memory does not grow with the input.

mod digests;
mod parse;
mod redacted;
mod refine;
mod walk;

use crate::digest::{Digest, Folder, Memory, disk, map_with, name_apart};
use crate::event::UserPatterns;
use crate::expect::Expectations;
use crate::input::{self, Encoding, FileBlocks, Pumped, Pumps, Source, Span};
use crate::job::{Job, Vantage};
use crate::rules::{self, Analysis, User, Wishes};
use bumpalo::Bump;
use parse::{Parser, Stream, Task, Text};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::input::Problem;
use digests::Found;
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

/// Reads the inputs: the logs into a digest, and where digests are among them.
fn fold_all(options: &Options, progress: &dyn Progress) -> (Digest, Vec<Found>, Vec<Problem>) {
    let resolved = input::resolve(&options.inputs);
    let mut feed = Feed::new(resolved.sources, options, progress);
    feed.problems = resolved.problems;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    match pool {
        Ok(pool) => pool.install(|| feed.run(options.patterns())),
        Err(_) => feed.run(options.patterns()),
    }
}

/// Blocks of pipes and compressed files that wait to be parsed.
const WAITING: usize = 4;

/// Streams that one running reader fills: an archive fills several in turn.
struct Pumping {
    /// Name of the source.
    name: String,
    /// Members are named behind it.
    archive: bool,
    /// Where its blocks go.
    stream: Option<usize>,
}

/// A stream and what is known of it beside its fold.
struct Row {
    stream: Arc<Stream>,
    /// Blocks that were handed out.
    handed: u64,
    /// Decoded bytes.
    bytes: u64,
    /// Its first bytes are no text.
    binary: bool,
}

struct Feed<'p> {
    sources: std::vec::IntoIter<Source>,
    /// The plain file whose blocks are handed out.
    open: Option<(usize, FileBlocks)>,
    pumps: Pumps,
    /// By the number of the reader.
    pumping: Vec<Pumping>,
    /// An archive is being read: what it holds comes before the next source's streams.
    archive: bool,
    streams: Vec<Row>,
    /// Digests among the inputs.
    digests: Vec<Found>,
    problems: Vec<Problem>,
    block_size: usize,
    progress: &'p dyn Progress,
}

impl<'p> Feed<'p> {
    fn new(sources: Vec<Source>, options: &Options, progress: &'p dyn Progress) -> Self {
        let total = sources.iter().map(|s| if let Source::File(p) = s { p.metadata().map_or(0, |m| m.len()) } else { 0 }).sum();
        progress.total(total);
        let block_size = if options.block_size == 0 { input::BLOCK_SIZE } else { options.block_size };
        Self {
            sources: sources.into_iter(),
            open: None,
            pumps: Pumps::new(WAITING, block_size, options.max_bytes),
            pumping: Vec::new(),
            archive: false,
            streams: Vec::new(),
            digests: Vec::new(),
            problems: Vec::new(),
            block_size,
            progress,
        }
    }

    /// The next block of any input; `None` past the end.
    fn next_task(&mut self, buffer: &mut Vec<u8>) -> Option<Task> {
        loop {
            let most = rayon::current_num_threads();
            while self.open.is_none() && !self.archive && self.pumps.running() < most {
                let Some(source) = self.sources.next() else { break };
                self.open_source(&source);
            }
            let idle = self.open.is_none();
            if let Some((number, piece)) = self.pumps.next(idle) {
                if let Some(task) = self.take(number, piece, buffer) {
                    return Some(task);
                }
            } else if let Some((stream, blocks)) = &mut self.open {
                if let Some(block) = blocks.next() {
                    let stream = *stream;
                    return Some(self.task(stream, Text::Read(block)));
                }
                self.open = None;
            } else {
                return None;
            }
        }
    }

    /// Hands a block out.
    fn task(&mut self, stream: usize, text: Text) -> Task {
        let row = &mut self.streams[stream];
        row.handed += 1;
        Task { stream: Arc::clone(&row.stream), turn: row.handed - 1, text }
    }

    /// Takes what a reader sent.
    fn take(&mut self, number: usize, piece: Pumped, buffer: &mut Vec<u8>) -> Option<Task> {
        match piece {
            Pumped::Member(name) => {
                let name = format!("{}!{name}", self.pumping[number].name);
                self.pumping[number].stream = Some(self.add_stream(name, false, 0));
            }
            Pumped::Block(block, span) => {
                self.pumps.give_back(std::mem::replace(buffer, block));
                let stream = self.pumping[number].stream?;
                return Some(self.task(stream, Text::Ready(span)));
            }
            Pumped::Whole(bytes) => {
                let stream = self.pumping[number].stream?;
                self.digests.push(Found::packed(self.name(stream), stream, bytes));
            }
            Pumped::End(bytes, problem) => {
                if let Some(stream) = self.pumping[number].stream {
                    self.streams[stream].bytes = bytes;
                    if let Some(text) = problem {
                        self.fail(stream, text);
                    }
                }
            }
            Pumped::Closed(problem) => {
                let pumping = &self.pumping[number];
                self.archive &= !pumping.archive;
                if let Some(text) = problem {
                    self.problems.push(Problem { path: pumping.name.clone(), text });
                }
            }
        }
        None
    }

    fn open_source(&mut self, source: &Source) {
        let name = source.name();
        let opened = match source {
            Source::Stdin => self.start(Box::new(io::stdin()), name.clone()),
            Source::File(path) => self.open_file(path, &name),
        };
        if let Err(error) = opened {
            self.problems.push(Problem { path: name, text: format!("cannot be read ({error}); check that it is a file and that you may read it") });
        }
    }

    /// Opens a file: blocks that the workers read themselves where its bytes are its text.
    fn open_file(&mut self, path: &std::path::Path, name: &str) -> io::Result<()> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            // A pipe: what was read to look at it could not be read again.
            return self.start(Box::new(file), name.to_owned());
        }
        let mut head = vec![0; 4096];
        let n = input::read_up_to(&mut file, &mut head)?;
        head.truncate(n);
        if input::sniff(&head[..n.min(64)]) != Encoding::Plain || input::is_tar(&head) {
            file.rewind()?;
            return self.start(Box::new(file), name.to_owned());
        }
        let len = meta.len();
        if disk::is_digest(&head) {
            self.progress.advance(len);
            self.digests.push(Found::file(path, name));
            return Ok(());
        }
        let stream = self.add_stream(name.to_owned(), looks_binary(&head), len);
        self.open = Some((stream, FileBlocks::new(file, len, self.block_size)));
        Ok(())
    }

    /// Starts a reader.
    fn start(&mut self, raw: Box<dyn Read + Send>, name: String) -> io::Result<()> {
        let (number, archive) = self.pumps.start(raw)?;
        debug_assert_eq!(number, self.pumping.len());
        let stream = if archive { None } else { Some(self.add_stream(name.clone(), false, 0)) };
        self.archive |= archive;
        self.pumping.push(Pumping { name, archive, stream });
        Ok(())
    }

    fn add_stream(&mut self, name: String, binary: bool, len: u64) -> usize {
        let stream = self.streams.len();
        self.streams.push(Row { stream: Arc::new(Stream::new(Folder::new(stream as u32, name))), handed: 0, bytes: len, binary });
        stream
    }

    fn name(&self, stream: usize) -> String {
        self.streams[stream].stream.with(|folder| folder.info.path.clone())
    }

    fn fail(&mut self, stream: usize, text: String) {
        let path = self.streams[stream].stream.with(|folder| {
            folder.info.problem = Some(text.clone());
            folder.info.path.clone()
        });
        self.problems.push(Problem { path, text });
    }

    /// Reads everything.
    fn run(self, patterns: Option<&UserPatterns>) -> (Digest, Vec<Found>, Vec<Problem>) {
        let parser = Parser { progress: self.progress, patterns };
        let feed = Mutex::new(self);
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|_| parser.work(|buffer| feed.lock().unwrap_or_else(PoisonError::into_inner).next_task(buffer)));
            }
        });
        feed.into_inner().unwrap_or_else(PoisonError::into_inner).finish(patterns)
    }

    /// What the streams say.
    fn finish(self, patterns: Option<&UserPatterns>) -> (Digest, Vec<Found>, Vec<Problem>) {
        let mut digest = Digest { patterns: patterns.map(UserPatterns::set).unwrap_or_default(), ..Digest::default() };
        let mut problems = self.problems;
        let finish = |row: Row| {
            // No worker is left that holds the stream.
            let (mut info, processes) = Arc::into_inner(row.stream)?.into_folder().finish(row.bytes);
            if row.binary && info.events == 0 {
                info.problem = Some("is no text and holds no log line; unpack it if it is an archive (zip, 7z, rar), or name the log file itself".to_owned());
            }
            Some((info, processes))
        };
        let finished: Vec<_> = self.streams.into_par_iter().filter_map(finish).collect();
        for (info, processes) in finished {
            if let Some(text) = &info.problem
                && !problems.iter().any(|p| p.path == info.path)
            {
                problems.push(Problem { path: info.path.clone(), text: text.clone() });
            }
            digest.streams.push(info);
            digest.processes.extend(processes);
        }
        (digest, self.digests, problems)
    }
}

/// More than a tenth of the first bytes are control bytes that no log holds.
fn looks_binary(head: &[u8]) -> bool {
    let odd = head.iter().filter(|b| (**b < 0x20 && !matches!(**b, b'\n' | b'\r' | b'\t' | 0x1b | 0x0c)) || **b == 0x7f).count();
    odd * 10 > head.len()
}
