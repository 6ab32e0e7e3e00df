//! What is shown while following: a block that is redrawn in place on a terminal, else one line a change.

use crate::follow::{Changes, Follower};
use crate::line::civil_date;
use crate::report::live::{View, block};
use crate::rules::Analysis;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The block is redrawn this often, for its clocks.
const REDRAW: Duration = Duration::from_secs(1);

/// The display on standard error.
pub struct Show {
    changes: Changes,
    quiet: bool,
    screen: Option<Screen>,
}

/// A terminal.
struct Screen {
    all: MultiProgress,
    rows: Vec<ProgressBar>,
    /// What the last look saw, kept for the clocks.
    view: Option<View>,
    drawn: Instant,
}

impl Show {
    /// A block if standard error is a terminal.
    pub fn new(quiet: bool) -> Self {
        let screen = (!quiet && io::stderr().is_terminal()).then(|| Screen {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)),
            rows: Vec::new(),
            view: None,
            drawn: Instant::now(),
        });
        Self { changes: Changes::default(), quiet, screen }
    }

    /// Names that have no file yet.
    pub fn awaited(&self, names: &[String]) {
        match names {
            [] => {}
            [one] => self.say(&format!("waiting for {one}")),
            [one, rest @ ..] => self.say(&format!("waiting for {one} and {} more", rest.len())),
        }
    }

    /// A look was taken.
    pub fn look(&mut self, analysis: &Analysis, follower: &Follower, elapsed: Duration) {
        for line in self.changes.lines(analysis) {
            self.say(&line);
        }
        if let Some(screen) = &mut self.screen {
            screen.view = Some(View::new(analysis));
            screen.draw(follower, elapsed);
        }
    }

    /// When the block's clocks are due.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        self.screen.as_ref().filter(|s| s.view.is_some()).map(|s| (s.drawn + REDRAW).max(now))
    }

    /// Lets the clocks go on.
    pub fn tick(&mut self, follower: &Follower, elapsed: Duration) {
        if let Some(screen) = &mut self.screen
            && screen.drawn.elapsed() >= REDRAW
        {
            screen.draw(follower, elapsed);
        }
    }

    /// Takes the block away.
    pub fn clear(&mut self) {
        if let Some(screen) = self.screen.take() {
            let _ = screen.all.clear();
        }
    }

    /// One line with its time.
    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        let line = format!("{}  {text}", clock(SystemTime::now()));
        match &self.screen {
            Some(screen) => {
                let _ = screen.all.println(line);
            }
            // Standard error may be closed, which must not stop the work.
            None => {
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }
}

impl Screen {
    fn draw(&mut self, follower: &Follower, elapsed: Duration) {
        let Some(view) = &self.view else { return };
        self.drawn = Instant::now();
        let lines = block(view, elapsed, &follower.silences(self.drawn));
        while self.rows.len() < lines.len() {
            let bar = self.all.add(ProgressBar::new_spinner());
            bar.set_style(ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
            self.rows.push(bar);
        }
        for bar in self.rows.drain(lines.len()..) {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
        for (bar, line) in self.rows.iter().zip(lines) {
            if bar.message() != line {
                bar.set_message(line);
            }
        }
    }
}

/// `2025-01-31T13:45:00Z`.
fn clock(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days as i64);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_show_civil_time() {
        for (seconds, text) in [(0, "1970-01-01T00:00:00Z"), (951_827_696, "2000-02-29T12:34:56Z"), (1_767_225_599, "2025-12-31T23:59:59Z")] {
            assert_eq!(clock(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
