//! How often to look, so that waiting costs nothing and news comes at once.

use std::time::{Duration, Instant};

/// Shortest and longest time between two rounds of polling.
const FAST: Duration = Duration::from_millis(100);
const SLOW: Duration = Duration::from_secs(2);
/// A round may take one part in so many of the time.
const SHARE: u32 = 100;

/// When to poll: twice as slow after every round that brought nothing, at once fast again after one that did.
#[derive(Debug)]
pub struct Pace {
    fixed: Option<Duration>,
    interval: Duration,
    next: Instant,
}

impl Pace {
    /// Polls every `fixed`, or as often as it pays.
    pub fn new(fixed: Option<Duration>) -> Self {
        Self { fixed, interval: fixed.unwrap_or(FAST), next: Instant::now() }
    }

    /// When the next round is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A round that took `cost` has ended.
    pub fn done(&mut self, now: Instant, grew: bool, cost: Duration) {
        let wanted = if grew { FAST } else { self.interval.saturating_mul(2).min(SLOW) };
        self.interval = self.fixed.unwrap_or(wanted.max(cost.saturating_mul(SHARE)));
        self.next = now + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_while_nothing_happens_fast_when_something_does() {
        let now = Instant::now();
        let mut pace = Pace::new(None);
        for _ in 0..6 {
            pace.done(now, false, Duration::ZERO);
        }
        assert_eq!(pace.next() - now, SLOW);
        pace.done(now, true, Duration::ZERO);
        assert_eq!(pace.next() - now, FAST);
        pace.done(now, true, Duration::from_millis(30));
        assert_eq!(pace.next() - now, Duration::from_secs(3));
        let mut fixed = Pace::new(Some(Duration::from_millis(500)));
        fixed.done(now, true, Duration::from_millis(30));
        assert_eq!(fixed.next() - now, Duration::from_millis(500));
    }
}
