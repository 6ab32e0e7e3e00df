//! What wakes the follower: changes in watched folders, bytes of a pipe, a signal.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Bytes of a pipe handed over at once.
const CHUNK: usize = 64 * 1024;

/// Something happened.
#[derive(Debug)]
pub enum Wake {
    /// Watched folders have news.
    Changed,
    /// Bytes of pipe number n.
    Pipe(usize, Vec<u8>),
    /// Pipe number n ended.
    PipeEnd(usize, Option<String>),
    /// Somebody asks to stop.
    Stop,
}

/// News that nobody has asked for yet.
#[derive(Debug, Default)]
pub struct News {
    /// Paths that changed, absolute.
    pub paths: BTreeSet<PathBuf>,
    /// Events were lost: anything may have changed.
    pub all: bool,
}

/// Watches folders. Without events (a file system that sends none, a limit that is reached) polling does its work.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    news: Arc<Mutex<News>>,
    watched: BTreeSet<PathBuf>,
}

impl Watch {
    /// A watch that reports to `wake`; `off` leaves all to polling.
    pub fn new(wake: SyncSender<Wake>, off: bool) -> Self {
        let news: Arc<Mutex<News>> = Arc::default();
        let shared = Arc::clone(&news);
        let watcher = (!off).then(|| notify::recommended_watcher(move |event| hear(event, &shared, &wake)).ok()).flatten();
        Self { watcher, news, watched: BTreeSet::new() }
    }

    /// Watches these folders and no others.
    pub fn cover(&mut self, folders: &BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        let wanted: BTreeSet<PathBuf> = folders.iter().map(|f| absolute(f)).collect();
        for gone in self.watched.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        self.watched.retain(|f| wanted.contains(f));
        for folder in &wanted {
            if !self.watched.contains(folder) && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(folder.clone());
            }
        }
    }

    /// The news since the last call. A watched folder among them was removed or moved: its watch is gone.
    pub fn take(&mut self) -> News {
        let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        for path in &news.paths {
            if self.watched.remove(path)
                && let Some(watcher) = &mut self.watcher
            {
                let _ = watcher.unwatch(path);
            }
        }
        news
    }
}

fn hear(event: notify::Result<notify::Event>, news: &Mutex<News>, wake: &SyncSender<Wake>) {
    let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
    let quiet = news.paths.is_empty() && !news.all;
    match event {
        // Opening and reading is what we do ourselves.
        Ok(event) if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)) => return,
        Ok(event) => {
            news.all |= event.need_rescan();
            news.paths.extend(event.paths);
        }
        Err(_) => news.all = true,
    }
    drop(news);
    if quiet {
        // A full channel wakes the follower anyway.
        let _ = wake.try_send(Wake::Changed);
    }
}

/// The path by which events name a file.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A reader that is no regular file.
pub struct Pipe;

impl Pipe {
    /// Reads `reader` on a thread of its own and reports as pipe number `number`; `tee` gets a copy of every byte.
    pub fn spawn(number: usize, mut reader: Box<dyn Read + Send>, mut tee: Option<Box<dyn Write + Send>>, wake: SyncSender<Wake>) {
        thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            let end = loop {
                match reader.read(&mut buffer) {
                    Ok(0) => break None,
                    Ok(n) => {
                        if let Some(out) = &mut tee
                            && out.write_all(&buffer[..n]).and_then(|()| out.flush()).is_err()
                        {
                            // Nobody reads the copy any more; the job behind the pipe must not suffer for it.
                            tee = None;
                        }
                        if wake.send(Wake::Pipe(number, buffer[..n].to_vec())).is_err() {
                            return;
                        }
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => break Some(e.to_string()),
                }
            };
            let _ = wake.send(Wake::PipeEnd(number, end));
        });
    }
}
