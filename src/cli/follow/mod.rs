//! `ncclog follow`: looks at a running job until it is told to stop, its pipe ends, or the gate has decided.

mod args;
mod feed;
mod show;

pub use args::{EXAMPLES, EXIT_CODES, FollowArgs, duration, poll};
pub(super) use feed::Feed;

use super::output::{self, report_options};
use super::{complain, exit, expectations};
use crate::expect::Expectations;
use crate::follow::{Extra, Follower, Gate, Passed};
use crate::report;
use crate::rules::{self, Analysis, User, Wishes};
use anyhow::{Result, bail};
use show::Show;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest and longest time between two looks, and the part of the time that looks may take.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MOST: Duration = Duration::from_secs(10);
const LOOK_SHARE: u32 = 8;

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
    let inputs = inputs(&args.inputs)?;
    if args.tee && !inputs.iter().any(|i| i == "-") {
        bail!("--tee passes standard input through; add `-` to what is followed");
    }
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    if let Some(path) = target {
        output::check(path)?;
        output::check_not_input(path, inputs.iter().map(String::as_str))?;
    }
    let redaction = args.redact.start(false)?;
    let user = args.config.load()?;
    let expected = expectations(&args.expect, &args.config)?;
    let feed = Feed::new(&inputs, args.poll, args.tee, Extra { observer: None, user: user.clone() })?;
    let show = Show::new(args.quiet);
    show.awaited(&feed.follower.awaited().into_iter().filter(|p| !p.exists()).map(|p| p.display().to_string()).collect::<Vec<_>>());
    let now = Instant::now();
    let mut session = Session { args, user, expected, feed, show, started: now, look_from: now, stalled: false };
    let (end, mut analysis) = session.run();
    session.show.clear();
    let code = code(&end, &analysis, &session.feed.follower, args);
    if let Some(redaction) = redaction {
        redaction.report(&mut analysis)?;
    }
    write(args, &analysis)?;
    Ok(code)
}

/// What to follow; standard input if nothing is named and it is no terminal.
pub(super) fn inputs(names: &[PathBuf]) -> Result<Vec<String>> {
    if names.is_empty() {
        if io::stdin().is_terminal() {
            bail!("no input; name files or directories, or send a log through a pipe");
        }
        return Ok(vec!["-".to_owned()]);
    }
    super::names(names)
}

fn code(end: &End, analysis: &Analysis, follower: &Follower, args: &FollowArgs) -> u8 {
    match end {
        End::Gate(Passed::Yes) => exit::OK,
        End::Gate(Passed::No) => exit::FOUND,
        End::TimedOut if args.until.is_some() => exit::UNDECIDED,
        End::TimedOut | End::Stopped => {
            let absent = tell_absent(follower);
            let problems = follower.problems();
            for problem in problems.iter().take(8) {
                complain(&format!("{}: {}", problem.path, problem.text));
            }
            let status = exit::status(&analysis.findings, absent || !problems.is_empty(), args.fail_on);
            // A gate that was not reached has not been passed, whoever ended it.
            if status == exit::OK && args.until.is_some() { exit::UNDECIDED } else { status }
        }
    }
}

/// Tells of the first names that never had a file; whether there are any.
pub fn tell_absent(follower: &Follower) -> bool {
    let absent = follower.awaited();
    for path in absent.iter().take(8) {
        complain(&format!("{}: no such file appeared; check the path", path.display()));
    }
    !absent.is_empty()
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
    user: Option<Arc<User>>,
    expected: Expectations,
    feed: Feed,
    show: Show,
    started: Instant,
    /// The next look may not come earlier.
    look_from: Instant,
    /// The silence of the last look counted as a stall already.
    stalled: bool,
}

impl Session<'_> {
    fn run(&mut self) -> (End, Analysis) {
        loop {
            self.feed.read();
            let now = Instant::now();
            if now >= self.look_from && (self.feed.changed || self.is_ripe(now)) {
                let analysis = self.look(now);
                let gate = self.args.until.map(|until| Gate { until });
                if let Some(passed) = gate.and_then(|g| g.check(&analysis, &self.expected)) {
                    return (End::Gate(passed), analysis);
                }
            }
            if self.feed.stop || self.feed.ended() {
                return (End::Stopped, self.last_look(false));
            }
            if self.args.timeout.is_some_and(|t| self.started.elapsed() >= t) {
                return (End::TimedOut, self.last_look(self.args.until.is_some()));
            }
            self.feed.wait(self.due(now));
            self.show.tick(&self.feed.follower, self.started.elapsed());
        }
    }

    fn silence(&self, now: Instant) -> Duration {
        self.feed.follower.progress().silence(now)
    }

    /// An unfinished line has waited long enough, or the silence has become a stall.
    fn is_ripe(&self, now: Instant) -> bool {
        let line = self.feed.follower.ripe().is_some_and(|at| at <= now && at > self.look_from);
        line || (!self.stalled && self.silence(now) >= self.args.stall)
    }

    /// When there is something to do although nothing was written.
    fn due(&self, now: Instant) -> Option<Instant> {
        let follower = &self.feed.follower;
        let look = self.feed.changed.then_some(self.look_from);
        let line = follower.ripe().filter(|at| *at > self.look_from);
        let stall = (!self.stalled).then(|| (follower.progress().at() + self.args.stall).max(self.look_from));
        let timeout = self.args.timeout.map(|t| self.started + t);
        [look, line, stall, timeout, self.show.next(now)].into_iter().flatten().min()
    }

    fn look(&mut self, now: Instant) -> Analysis {
        self.feed.changed = false;
        let wishes = Wishes { user: self.user.as_deref(), expect: Some(&self.expected) };
        let analysis = self.feed.follower.analyze(now, Some(self.args.stall), |job| rules::run_with(job, wishes));
        self.stalled = self.silence(now) >= self.args.stall;
        self.show.look(&analysis, &self.feed.follower, self.started.elapsed());
        self.look_from = Instant::now() + now.elapsed().saturating_mul(LOOK_SHARE).clamp(LOOK, LOOK_MOST);
        analysis
    }

    /// Reads what is left and looks once more. A job that hung until the end still hangs; any other is seen as it
    /// would be from its logs alone.
    fn last_look(&mut self, live: bool) -> Analysis {
        self.feed.read_rest();
        let now = Instant::now();
        let live = live || (self.silence(now) >= self.args.stall && !self.feed.ended());
        let wishes = Wishes { user: self.user.as_deref(), expect: Some(&self.expected) };
        let mut analysis = self.feed.follower.analyze(now, live.then_some(self.args.stall), |job| rules::run_with(job, wishes));
        if let Some(until) = self.args.until {
            for missing in (Gate { until }).missing(&analysis, &self.expected) {
                if !analysis.notes.contains(&missing) {
                    analysis.notes.push(missing);
                }
            }
        }
        self.show.look(&analysis, &self.feed.follower, self.started.elapsed());
        analysis
    }
}
