//! `ncclog follow`: looks at a running job until it is told to stop, its pipe ends, or the gate has decided.

mod args;
mod show;

pub use args::{EXAMPLES, EXIT_CODES, FollowArgs};

use super::output::{self, report_options};
use super::{complain, exit, expectations};
use crate::expect::Expectations;
use crate::follow::{Follower, Gate, Pace, Passed, Pipe, Wake, Watch};
use crate::report;
use crate::rules::{self, Analysis};
use anyhow::{Result, anyhow, bail};
use show::Show;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Shortest and longest time between two looks, and the part of the time that looks may take.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MOST: Duration = Duration::from_secs(10);
const LOOK_SHARE: u32 = 8;
/// Messages taken from the channel before the next look.
const BATCH: usize = 64;
/// Rounds of reading at the end; a job that writes faster than this is read as far as it goes.
const LAST_ROUNDS: usize = 256;

/// Why it ended.
enum End {
    /// A signal, or every pipe ended.
    Stopped,
    /// `--timeout` ran out.
    TimedOut,
    /// The gate decided.
    Gate(Passed),
}

/// Follows, reports, and gives the exit code.
pub fn run(args: &FollowArgs) -> Result<u8> {
    let inputs = inputs(args)?;
    if args.tee && !inputs.iter().any(|i| i == "-") {
        bail!("--tee passes standard input through; add `-` to what is followed");
    }
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    if let Some(path) = target {
        output::check(path)?;
        output::check_not_input(path, inputs.iter().map(String::as_str))?;
    }
    let expected = expectations(&args.expect)?;
    let (wake, woken) = sync_channel(BATCH);
    stop_on_signals(&wake)?;
    let mut session = Session::new(args, &inputs, expected, wake, woken);
    let (end, analysis) = session.run();
    session.show.clear();
    let code = code(&end, &analysis, &session.follower, args);
    write(args, &analysis)?;
    Ok(code)
}

fn inputs(args: &FollowArgs) -> Result<Vec<String>> {
    if args.inputs.is_empty() {
        if io::stdin().is_terminal() {
            bail!("nothing to follow; name files or directories, or send a log through a pipe");
        }
        return Ok(vec!["-".to_owned()]);
    }
    args.inputs.iter().map(|p| p.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8; rename the file", p.display()))).collect()
}

/// The first signal asks for the report, the second ends at once.
fn stop_on_signals(wake: &SyncSender<Wake>) -> Result<()> {
    let asked = AtomicBool::new(false);
    let wake = wake.clone();
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        // A full channel is drained soon.
        let _ = wake.send(Wake::Stop);
    })
    .map_err(|e| anyhow!("signals cannot be caught ({e})"))
}

fn code(end: &End, analysis: &Analysis, follower: &Follower, args: &FollowArgs) -> u8 {
    match end {
        End::Gate(Passed::Yes) => exit::OK,
        End::Gate(Passed::No) => exit::FOUND,
        End::TimedOut if args.until.is_some() => exit::UNDECIDED,
        End::TimedOut | End::Stopped => {
            let unread = follower.awaited().len();
            for path in follower.awaited().into_iter().take(8) {
                complain(&format!("{}: no such file appeared; check the path", path.display()));
            }
            let problems: Vec<_> = analysis.job.streams.iter().filter_map(|s| Some((&s.path, s.problem.as_ref()?))).collect();
            for (path, problem) in problems.iter().take(8) {
                complain(&format!("{path}: {problem}"));
            }
            exit::status(&analysis.findings, unread > 0 || !problems.is_empty(), args.fail_on)
        }
    }
}

/// Writes the report. What cannot go to its file goes to standard error, so that nothing is lost to a full disk.
fn write(args: &FollowArgs, analysis: &Analysis) -> Result<()> {
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    let to_stderr = || {
        let options = report_options(args.width, false, args.quiet, false);
        let _ = report::write(args.format, analysis, &mut io::stderr().lock(), &options);
    };
    match target {
        Some(path) => {
            let options = report_options(args.width, false, args.quiet, args.color.color == clap::ColorChoice::Always);
            output::to_file(path, |out| report::write(args.format, analysis, out, &options)).inspect_err(|_| to_stderr())
        }
        None if args.tee => {
            to_stderr();
            Ok(())
        }
        None => {
            let options = report_options(args.width, true, args.quiet, output::use_color(args.color.color));
            output::to_stdout(options.color, |out| report::write(args.format, analysis, out, &options))
        }
    }
}

/// Everything that a run of `follow` holds.
struct Session<'a> {
    args: &'a FollowArgs,
    expected: Expectations,
    follower: Follower,
    watch: Watch,
    pace: Pace,
    show: Show,
    wake: SyncSender<Wake>,
    woken: Receiver<Wake>,
    started: Instant,
    /// The next look may not come earlier.
    look_from: Instant,
    /// Something was read since the last look.
    changed: bool,
    /// There is more to read at once.
    more: bool,
    /// Folders may hold new files.
    rescan: bool,
    stop: bool,
    /// The silence of the last look counted as a stall already.
    stalled: bool,
}

impl<'a> Session<'a> {
    fn new(args: &'a FollowArgs, inputs: &[String], expected: Expectations, wake: SyncSender<Wake>, woken: Receiver<Wake>) -> Self {
        let now = Instant::now();
        let mut session = Self {
            args,
            expected,
            follower: Follower::new(inputs),
            watch: Watch::new(wake.clone(), args.poll.is_some()),
            pace: Pace::new(args.poll),
            show: Show::new(args.quiet),
            wake,
            woken,
            started: now,
            look_from: now,
            changed: true,
            more: false,
            rescan: false,
            stop: false,
            stalled: false,
        };
        if session.follower.has_stdin() {
            let tee: Option<Box<dyn Write + Send>> = args.tee.then(|| Box::new(io::stdout()) as Box<dyn Write + Send>);
            Pipe::spawn(0, Box::new(io::stdin()), tee, session.wake.clone());
        }
        session.scan();
        let awaited = session.follower.awaited().into_iter().filter(|p| !p.exists()).map(|p| p.display().to_string()).collect::<Vec<_>>();
        session.show.awaited(&awaited);
        session
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

    fn run(&mut self) -> (End, Analysis) {
        loop {
            self.read();
            let now = Instant::now();
            if now >= self.look_from && (self.changed || self.is_ripe(now)) {
                let analysis = self.look(now);
                let gate = self.args.until.map(|until| Gate { until });
                if let Some(passed) = gate.and_then(|g| g.check(&analysis, &self.expected)) {
                    return (End::Gate(passed), analysis);
                }
            }
            if self.stop || (self.follower.ended() && !self.more) {
                return (End::Stopped, self.last_look());
            }
            if self.args.timeout.is_some_and(|t| self.started.elapsed() >= t) {
                return (End::TimedOut, self.last_look());
            }
            self.wait();
        }
    }

    /// Reads what is new.
    fn read(&mut self) {
        let now = Instant::now();
        let round = now >= self.pace.next();
        if round {
            self.follower.mark_all();
        }
        if (round || self.rescan) && self.follower.folders_changed() {
            self.scan();
        }
        self.rescan = false;
        let look = self.follower.read();
        self.changed |= look.grew;
        self.more = look.more;
        if round {
            self.pace.done(now, look.grew, now.elapsed().min(Duration::from_millis(50)));
        }
    }

    /// An unfinished line has waited long enough, or the silence has become a stall.
    fn is_ripe(&self, now: Instant) -> bool {
        let line = self.follower.ripe().is_some_and(|at| at <= now && at > self.look_from);
        line || (!self.stalled && self.follower.progress().silence(now) >= self.args.stall)
    }

    fn look(&mut self, now: Instant) -> Analysis {
        self.changed = false;
        self.stalled = self.follower.progress().silence(now) >= self.args.stall;
        let (stall, expected) = (self.args.stall, &self.expected);
        let analysis = self.follower.analyze(now, Some(stall), |job| rules::run_expecting(job, expected));
        self.stalled &= self.follower.progress().silence(now) >= self.args.stall;
        self.show.look(&analysis, &self.follower, self.started.elapsed());
        let cost = now.elapsed();
        self.look_from = Instant::now() + cost.saturating_mul(LOOK_SHARE).clamp(LOOK, LOOK_MOST);
        analysis
    }

    /// Reads what is left and looks once more. A job that hung until the end still hangs; any other is seen as it
    /// would be from its logs alone.
    fn last_look(&mut self) -> Analysis {
        self.scan();
        for _ in 0..LAST_ROUNDS {
            self.follower.mark_all();
            while let Ok(message) = self.woken.try_recv() {
                self.take(message);
            }
            let look = self.follower.read();
            if !look.more {
                break;
            }
        }
        let now = Instant::now();
        let hangs = self.follower.progress().silence(now) >= self.args.stall || self.args.until.is_some();
        let (stall, expected) = (hangs.then_some(self.args.stall), &self.expected);
        let mut analysis = self.follower.analyze(now, stall, |job| rules::run_expecting(job, expected));
        if let Some(until) = self.args.until {
            analysis.notes.extend(Gate { until }.missing(&analysis, &self.expected));
            analysis.notes.dedup();
        }
        self.show.look(&analysis, &self.follower, self.started.elapsed());
        analysis
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self) {
        let now = Instant::now();
        let mut until = self.pace.next();
        if self.more {
            until = now;
        }
        if self.changed {
            until = until.min(self.look_from);
        }
        if let Some(ripe) = self.follower.ripe().filter(|at| *at > self.look_from) {
            until = until.min(ripe);
        }
        if !self.stalled {
            until = until.min((self.follower.progress().at() + self.args.stall).max(self.look_from));
        }
        if let Some(timeout) = self.args.timeout {
            until = until.min(self.started + timeout);
        }
        if let Some(redraw) = self.show.next(now) {
            until = until.min(redraw);
        }
        if let Ok(message) = self.woken.recv_timeout(until.saturating_duration_since(now)) {
            self.take(message);
            for message in self.woken.try_iter().take(BATCH).collect::<Vec<_>>() {
                self.take(message);
            }
        }
        self.show.tick(&self.follower, self.started.elapsed());
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
