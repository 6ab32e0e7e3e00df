//! The progress bar: only on a terminal, and only if the work takes long enough to wonder.

use crate::analysis::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar on standard error.
pub struct Bar {
    drawn: ProgressBar,
    start: Instant,
    wanted: bool,
    shown: AtomicBool,
}

impl Bar {
    /// A bar that shows itself when it is due.
    pub fn new(quiet: bool) -> Self {
        let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        drawn.set_style(style("{spinner} {bytes} read, {bytes_per_sec}"));
        Self { drawn, start: Instant::now(), wanted: !quiet && io::stderr().is_terminal(), shown: AtomicBool::new(false) }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.drawn.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bar {
    fn total(&self, bytes: u64) {
        if bytes > 0 {
            self.drawn.set_style(style("{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left"));
            self.drawn.set_length(bytes);
        }
    }

    fn advance(&self, bytes: u64) {
        if !self.wanted {
            return;
        }
        self.drawn.inc(bytes);
        if self.start.elapsed() >= PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
