//! Brings what is written to the follower: watches, polls, takes pipes and signals.

use crate::follow::{Extra, Follower, Pace, Pipe, Wake, Watch};
use anyhow::{Result, anyhow};
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Messages taken from the channel before the next look.
const BATCH: usize = 64;
/// Rounds of reading at the end; a job that writes faster than this is read as far as it goes.
const LAST_ROUNDS: usize = 256;

/// The follower and what wakes it.
pub struct Feed {
    /// The follower.
    pub follower: Follower,
    /// Something was read since this was last cleared.
    pub changed: bool,
    /// Somebody asked to stop.
    pub stop: bool,
    watch: Watch,
    pace: Pace,
    wake: SyncSender<Wake>,
    woken: Receiver<Wake>,
    /// There is more to read at once.
    more: bool,
    /// Folders may hold new files.
    rescan: bool,
}

impl Feed {
    /// Follows `inputs`; signals ask it to stop. `tee` passes standard input through.
    pub fn new(inputs: &[String], poll: Option<Duration>, tee: bool, extra: Extra) -> Result<Self> {
        let (wake, woken) = sync_channel(BATCH);
        stop_on_signals(&wake)?;
        let mut feed = Self {
            follower: Follower::new(inputs, extra),
            changed: true,
            stop: false,
            watch: Watch::new(wake.clone(), poll.is_some()),
            pace: Pace::new(poll),
            wake,
            woken,
            more: false,
            rescan: false,
        };
        if feed.follower.has_stdin() {
            let copy: Option<Box<dyn Write + Send>> = tee.then(|| Box::new(io::stdout()) as Box<dyn Write + Send>);
            Pipe::spawn(0, Box::new(io::stdin()), copy, feed.wake.clone());
        }
        feed.scan();
        Ok(feed)
    }

    fn scan(&mut self) {
        let folders = self.follower.scan();
        self.watch.cover(&folders);
        for (number, path) in self.follower.take_pipes() {
            // Opening a pipe may wait for its writer; that is the reader's business.
            let wake = self.wake.clone();
            std::thread::spawn(move || match File::open(&path) {
                Ok(file) => Pipe::spawn(number, Box::new(file), None, wake),
                Err(error) => {
                    let _ = wake.send(Wake::PipeEnd(number, Some(error.to_string())));
                }
            });
        }
    }

    /// Reads what is new.
    pub fn read(&mut self) {
        let now = Instant::now();
        let round = now >= self.pace.next();
        if round {
            self.follower.mark_all();
        }
        if (round || self.rescan) && self.follower.folders_changed() {
            self.scan();
        }
        self.rescan = false;
        let looked = Instant::now();
        let look = self.follower.read();
        self.changed |= look.grew;
        self.more = look.more;
        if round {
            // What reading cost says nothing of what looking costs.
            let cost = if look.grew { Duration::ZERO } else { looked.elapsed() };
            self.pace.done(Instant::now(), look.grew, cost);
        }
    }

    /// Reads all that is left.
    pub fn read_rest(&mut self) {
        self.scan();
        for _ in 0..LAST_ROUNDS {
            self.follower.mark_all();
            while let Ok(message) = self.woken.try_recv() {
                self.take(message);
            }
            if !self.follower.read().more {
                break;
            }
        }
    }

    /// Nothing more can come.
    pub fn ended(&self) -> bool {
        self.follower.ended() && !self.more
    }

    /// Sleeps until something happens, files are due, or it is `until`.
    pub fn wait(&mut self, until: Option<Instant>) {
        let now = Instant::now();
        let due = if self.more { now } else { until.map_or(self.pace.next(), |at| at.min(self.pace.next())) };
        if let Ok(message) = self.woken.recv_timeout(due.saturating_duration_since(now)) {
            self.take(message);
            for _ in 0..BATCH {
                let Ok(message) = self.woken.try_recv() else { break };
                self.take(message);
            }
        }
    }

    fn take(&mut self, message: Wake) {
        match message {
            Wake::Stop => self.stop = true,
            Wake::Pipe(number, bytes) => {
                self.follower.feed(number, &bytes);
                self.changed = true;
            }
            Wake::PipeEnd(number, error) => {
                self.follower.end(number, error);
                self.changed = true;
            }
            Wake::Changed => {
                let news = self.watch.take();
                self.rescan |= self.follower.hear(&news);
            }
        }
    }
}

/// The first signal asks for the report, the second ends at once.
fn stop_on_signals(wake: &SyncSender<Wake>) -> Result<()> {
    let asked = AtomicBool::new(false);
    let wake = wake.clone();
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        let _ = wake.send(Wake::Stop);
    };
    ctrlc::set_handler(handler).map_err(|e| anyhow!("signals cannot be caught ({e})"))
}
