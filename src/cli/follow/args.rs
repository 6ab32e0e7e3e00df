//! The arguments of `ncclog follow`.

use crate::cli::args::{ColorArg, ConfigArgs, ExpectArg};
use crate::cli::exit::FailOn;
use crate::cli::redact::RedactArg;
use crate::follow::Until;
use crate::report::Format;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  ncclog follow logs/                                  until Ctrl-C, which prints the report
  ncclog follow 'logs/rank*.log' --until ready --timeout 10m --expect net=IB
  train 2>&1 | ncclog follow - --tee > train.log       the job's output passes through";

/// What stands behind them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  no finding at or above --fail-on; with --until: it is reached, and all expectations hold
  1  a finding at or above --fail-on; with --until: an error is certain, or an expectation is violated
  2  wrong usage, or an input or output failed
  3  only with --until: undecided when --timeout ran out, the input ended or it was stopped

Files are followed by name from their beginning, through rotation and truncation; files that
appear later in a directory or a quoted pattern join in. Changes go to standard error, the
report at the end to standard output (with --tee: to standard error, or --output).";

/// Arguments of `follow`.
#[derive(Debug, Args)]
pub struct FollowArgs {
    /// Log files (they may appear later), directories of them, quoted globs; `-` or nothing follows a pipe
    #[arg(value_name = "FILE|DIR|-")]
    pub inputs: Vec<PathBuf>,
    /// End with 0 as soon as this is reached: ready (every rank is Init COMPLETE), collective (one has finished)
    #[arg(long, value_enum, value_name = "GOAL", hide_possible_values = true)]
    pub until: Option<Until>,
    /// End after this time (3 with --until), e.g. 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Silence after which a start counts as hanging
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub stall: Duration,
    /// Look at the files this often instead of waiting for the system's events
    #[arg(long, value_name = "TIME", value_parser = poll)]
    pub poll: Option<Duration>,
    /// Pass standard input through to standard output, unchanged
    #[arg(long)]
    pub tee: bool,
    /// What must hold
    #[command(flatten)]
    pub expect: ExpectArg,
    /// What the report may show
    #[command(flatten)]
    pub redact: RedactArg,
    /// Configuration
    #[command(flatten)]
    pub config: ConfigArgs,
    /// How to report at the end: text for people, json for programs
    #[arg(long, value_enum, hide_possible_values = true, default_value_t)]
    pub format: Format,
    /// Write the report to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What makes the exit code 1: error, warning (or worse), never
    #[arg(long, value_enum, value_name = "SEVERITY", hide_possible_values = true, default_value_t)]
    pub fail_on: FailOn,
    /// Print only the report at the end, and only its verdict, proof and next command
    #[arg(long, short)]
    pub quiet: bool,
    /// Columns of the text report instead of the terminal's
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub width: Option<u16>,
    /// Colours
    #[command(flatten)]
    pub color: ColorArg,
}

/// `500ms`, `60s`, `10m`, `2h`; a bare number counts seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| "a time is a number with a unit, as in 500ms, 60s, 10m or 2h")?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(format!("{unit} is no unit of time; use ms, s, m or h")),
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|d| *d <= Duration::from_secs(365 * 86_400)).ok_or_else(|| "that is too long".to_owned())
}

/// Polling without a pause would take a whole core.
pub fn poll(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|d| if d < Duration::from_millis(10) { Err("10ms is the shortest".to_owned()) } else { Ok(d) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, millis) in [("500ms", 500), ("60s", 60_000), ("10m", 600_000), ("1.5h", 5_400_000), ("7", 7_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "m", "5d", "-1s", "1e9h", "9999999999h", "1..2s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(poll("1ms").is_err());
    }
}
