//! All names together: which to look at, and what to say of them.

use super::file::Known;
use super::targets::{Scan, parent};
use super::watch::{News, absolute};
use super::{Extra, Lines, Progress, Stream, Tail, Targets};
use crate::digest::{Digest, Process, StreamInfo};
use crate::input::Problem;
use crate::job::{Job, Vantage};
use crate::rules::Analysis;
use ahash::AHashMap;
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A line without its end is used when nothing was added to it for so long.
pub const PAUSE: Duration = Duration::from_millis(700);
/// Open files that something else in this process may need.
const SPARE_FILES: u64 = 64;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A pipe that is followed.
struct PipeTail {
    lines: Lines,
    stream: Stream,
    grown: Instant,
    ended: bool,
}

/// Where a stream's data is.
#[derive(Clone, Copy)]
enum Place {
    Tail(usize),
    Pipe(usize),
}

/// What a round brought.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// Something was read.
    pub grew: bool,
    /// There is more to read at once.
    pub more: bool,
}

/// Follows all inputs.
pub struct Follower {
    extra: Extra,
    targets: Targets,
    tails: Vec<Tail>,
    pipes: Vec<PipeTail>,
    streams: Vec<Place>,
    by_path: AHashMap<PathBuf, usize>,
    /// Names that hold what another name's stream has read.
    copies: AHashMap<PathBuf, (u64, u64)>,
    known: Known,
    dirty: BTreeSet<usize>,
    /// Most files that may stay open.
    most_open: usize,
    progress: Progress,
    /// Paths that turned out to be pipes and are not read yet.
    new_pipes: Vec<(usize, PathBuf)>,
}

impl Follower {
    /// Follows `inputs`; nothing is read yet.
    pub fn new(inputs: &[String], extra: Extra) -> Self {
        let mut follower = Self {
            extra,
            targets: Targets::new(inputs),
            tails: Vec::new(),
            pipes: Vec::new(),
            streams: Vec::new(),
            by_path: AHashMap::new(),
            copies: AHashMap::new(),
            known: Known::new(),
            dirty: BTreeSet::new(),
            most_open: most_open(),
            progress: Progress::new(Instant::now()),
            new_pipes: Vec::new(),
        };
        if follower.targets.stdin {
            follower.add_pipe("-".to_owned());
        }
        follower
    }

    fn add_pipe(&mut self, name: String) -> usize {
        let number = self.pipes.len();
        let stream = Stream::new(self.streams.len() as u32, name).with(self.extra.clone());
        self.pipes.push(PipeTail { lines: Lines::default(), stream, grown: Instant::now(), ended: false });
        self.streams.push(Place::Pipe(number));
        number
    }

    /// Standard input is followed as pipe 0.
    pub fn has_stdin(&self) -> bool {
        self.targets.stdin
    }

    /// Pipes that were found among the names since the last call: number and path.
    pub fn take_pipes(&mut self) -> Vec<(usize, PathBuf)> {
        std::mem::take(&mut self.new_pipes)
    }

    /// Names that have no file yet.
    pub fn awaited(&self) -> Vec<&Path> {
        self.tails.iter().filter(|t| !t.seen).map(|t| t.path.as_path()).collect()
    }

    /// Inputs that could not be read when it looked last, and directories that could not be searched.
    pub fn problems(&self) -> Vec<Problem> {
        let stream = |place: &Place| match *place {
            Place::Tail(i) => &self.tails[i].stream,
            Place::Pipe(i) => &self.pipes[i].stream,
        };
        let unread = self.streams.iter().map(stream).filter_map(|s| Some(Problem { path: s.name().to_owned(), text: s.problem()?.to_owned() }));
        unread.chain(self.targets.closed.iter().cloned()).collect()
    }

    /// Every input has ended: nothing more can come.
    pub fn ended(&self) -> bool {
        self.tails.is_empty() && !self.pipes.is_empty() && self.pipes.iter().all(|p| p.ended) && self.targets.is_only_pipes()
    }

    /// Looks for new files. Returns the folders to watch.
    pub fn scan(&mut self) -> BTreeSet<PathBuf> {
        let Scan { files, folders } = self.targets.scan();
        for path in files {
            let key = absolute(&path);
            if !self.by_path.contains_key(&key) && self.is_new(&path, &key) {
                self.join(path, key);
            }
        }
        folders
    }

    /// Whether a folder changed since the last scan.
    pub fn folders_changed(&self) -> bool {
        self.targets.changed()
    }

    fn join(&mut self, path: PathBuf, key: PathBuf) {
        if fs::metadata(&path).is_ok_and(|m| m.file_type().is_fifo() || m.file_type().is_char_device() || m.file_type().is_socket()) {
            let number = self.add_pipe(path.display().to_string());
            self.by_path.insert(key, usize::MAX);
            self.targets.is_pipe(&path);
            self.new_pipes.push((number, path));
            return;
        }
        let id = self.streams.len() as u32;
        self.by_path.insert(key, self.tails.len());
        self.dirty.insert(self.tails.len());
        self.streams.push(Place::Tail(self.tails.len()));
        self.tails.push(Tail::new(id, path, self.extra.clone()));
    }

    /// A name that appeared is new unless it is a followed file under another name, or a copy of one.
    fn is_new(&mut self, path: &Path, key: &Path) -> bool {
        let Ok(meta) = fs::metadata(path) else { return self.targets.names(path) };
        let id = (meta.dev(), meta.ino());
        if self.copies.get(key) == Some(&id) {
            return false;
        }
        // To open a pipe waits for its writer, and takes it from the reader.
        if !meta.is_file() {
            return true;
        }
        let Ok(file) = File::open(path) else { return true };
        let held = self.known.contains_key(&id) && self.tails.iter().any(|t| t.prints().any(|p| p.0 == id));
        let moved = held || self.known.get(&id).is_some_and(|print| print.position > 0 && print.fits(&file));
        let rotated = || {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let of = self.tails.iter().filter(|t| t.seen && parent(&t.path) == parent(path));
            let mut of = of.filter(|t| t.path.file_name().is_some_and(|known| is_rotation(&name, &known.to_string_lossy())));
            of.any(|t| t.heads.iter().any(|head| starts_with(&file, head)))
        };
        if moved || rotated() {
            self.copies.insert(key.to_owned(), id);
            return false;
        }
        true
    }

    /// What was heard of changes.
    pub fn hear(&mut self, news: &News) -> bool {
        let mut folders = news.all;
        if news.all {
            self.mark_all();
        }
        for path in &news.paths {
            match self.by_path.get(path) {
                Some(index) if *index < self.tails.len() => {
                    self.dirty.insert(*index);
                }
                Some(_) => {}
                None => folders = true,
            }
        }
        folders
    }

    /// Every name is to be looked at.
    pub fn mark_all(&mut self) {
        self.dirty.extend(0..self.tails.len());
    }

    /// Reads what is new under the marked names.
    pub fn read(&mut self) -> Look {
        let dirty = std::mem::take(&mut self.dirty);
        if dirty.is_empty() {
            return Look::default();
        }
        let keep = self.tails.len() <= self.most_open;
        let known = &self.known;
        let look = |(i, tail): (usize, &mut Tail)| (i, BUFFER.with_borrow_mut(|buffer| tail.look(known, keep, buffer)));
        let seen: Vec<_> = if dirty.len() == 1 {
            dirty.iter().filter_map(|i| self.tails.get_mut(*i).map(|t| look((*i, t)))).collect()
        } else {
            self.tails.par_iter_mut().enumerate().with_min_len(64).filter(|(i, _)| dirty.contains(i)).map(look).collect()
        };
        let mut out = Look::default();
        for (i, seen) in seen {
            out.grew |= seen.grew;
            out.more |= seen.more;
            if seen.more {
                self.dirty.insert(i);
            }
            if seen.folder {
                self.targets.is_folder(&self.tails[i].path);
            }
            if seen.grew || seen.met {
                for (id, print) in self.tails[i].prints() {
                    self.known.insert(id, print.clone());
                }
            }
        }
        out
    }

    /// Bytes of a pipe came.
    pub fn feed(&mut self, number: usize, bytes: &[u8]) {
        if let Some(pipe) = self.pipes.get_mut(number) {
            pipe.lines.feed(bytes, &mut pipe.stream);
            pipe.grown = Instant::now();
        }
    }

    /// A pipe ended, perhaps by an error.
    pub fn end(&mut self, number: usize, error: Option<String>) {
        if let Some(pipe) = self.pipes.get_mut(number) {
            pipe.lines.end(&mut pipe.stream);
            pipe.stream.fail(error.map(|e| format!("could be read only up to byte {} ({e})", pipe.stream.bytes())));
            pipe.ended = true;
        }
    }

    /// When an unfinished line will have waited long enough to be used.
    pub fn ripe(&self) -> Option<Instant> {
        let tails = self.tails.iter().filter(|t| !t.unfinished().is_empty()).map(|t| t.grown);
        let pipes = self.pipes.iter().filter(|p| !p.lines.rest().is_empty()).map(|p| p.grown);
        tails.chain(pipes).max().map(|at| at + PAUSE)
    }

    /// Since when each stream is silent, in the order of the streams.
    pub fn silences(&self, now: Instant) -> Vec<Duration> {
        let grown = |place: &Place| match *place {
            Place::Tail(i) => self.tails[i].grown,
            Place::Pipe(i) => self.pipes[i].grown,
        };
        self.streams.iter().map(|p| now.saturating_duration_since(grown(p))).collect()
    }

    /// The clock of progress.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What the logs say now. `whole` takes every unfinished line as it stands, for no more will come.
    pub fn digest(&self, now: Instant, whole: bool) -> Digest {
        let one = |place: &Place| -> (StreamInfo, Vec<Process>) {
            let (stream, unfinished, grown) = match *place {
                Place::Tail(i) => (&self.tails[i].stream, self.tails[i].unfinished(), self.tails[i].grown),
                Place::Pipe(i) => (&self.pipes[i].stream, vec![self.pipes[i].lines.rest()], self.pipes[i].grown),
            };
            let used = whole || now.saturating_duration_since(grown) >= PAUSE;
            stream.snapshot(if used { &unfinished } else { &[] })
        };
        let parts: Vec<_> = self.streams.par_iter().with_min_len(16).map(one).collect();
        let mut digest = Digest { patterns: self.extra.set(), ..Digest::default() };
        for (info, processes) in parts {
            digest.streams.push(info);
            digest.processes.extend(processes);
        }
        digest
    }

    /// Asks job and rules. `stall` is the silence that counts as waiting; `None` if no more will come.
    pub fn analyze(&mut self, now: Instant, stall: Option<Duration>, rules: impl FnOnce(Job) -> Analysis) -> Analysis {
        let digest = self.digest(now, stall.is_none());
        self.progress.update(&digest, now);
        let silent_micros = self.progress.silence(now).as_micros() as u64;
        let vantage = stall.map_or(Vantage::PostMortem, |stall| Vantage::Live { silent_micros, stall_micros: stall.as_micros() as u64 });
        let mut analysis = rules(Job::build(digest, vantage));
        analysis.notes.extend(self.remarks());
        analysis
    }

    /// What the report says of the way the files were read.
    fn remarks(&self) -> Vec<String> {
        const MOST: usize = 8;
        let all: Vec<String> = self.tails.iter().filter_map(|t| t.stream.remark.as_ref().map(|r| format!("{} {r}.", t.stream.name()))).collect();
        let more = all.len().saturating_sub(MOST);
        let mut notes: Vec<String> = all.into_iter().take(MOST).collect();
        if more > 0 {
            notes.push(format!("{more} more files began anew while they were followed."));
        }
        notes
    }
}

/// `rank0.log.1`, `rank0.log-20250101.gz`, `rank0.log.old` beside `rank0.log`.
fn is_rotation(name: &str, of: &str) -> bool {
    name.len() > of.len() && name.starts_with(of) && name[of.len()..].starts_with(['.', '-', '~', '_'])
}

fn starts_with(file: &File, head: &[u8]) -> bool {
    use std::os::unix::fs::FileExt;
    let mut now = vec![0; head.len()];
    !head.is_empty() && file.read_exact_at(&mut now, 0).is_ok() && now == head
}

/// Raises the limit on open files as far as allowed; returns how many logs may stay open.
fn most_open() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(SPARE_FILES)).unwrap_or(usize::MAX)
}
