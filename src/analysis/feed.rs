//! Hands the blocks of all inputs to the workers, in an order that keeps few files open, and gathers what they made.

use super::digests::Found;
use super::parse::{Parser, Stream, Task, Text};
use super::{Options, Problem, Progress};
use crate::digest::{Digest, Folder, disk};
use crate::event::UserPatterns;
use crate::input::{self, Encoding, FileBlocks, Pumped, Pumps, Source};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads the inputs: the logs into a digest, and where digests are among them.
pub(super) fn fold_all(options: &Options, progress: &dyn Progress) -> (Digest, Vec<Found>, Vec<Problem>) {
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
