//! The command line: reads arguments, runs the corridor, writes the result, chooses the exit code.

mod analyze;
mod args;
mod bundle;
mod collect;
mod diff;
mod digest;
mod env;
mod events;
mod exit;
mod expect;
mod explain;
mod explain_line;
mod fix;
mod follow;
mod output;
mod packaging;
mod progress;
mod redact;

pub use exit::{FOUND, FailOn, OK, TROUBLE};

use crate::expect::{Expectations, parse as parse_expectations};
use crate::report::{JSON_SCHEMA, clean};
use anyhow::{Context, Result, anyhow};
use args::{Cli, Command, ConfigArgs, ExpectArg, SchemaOf};
use clap::Parser;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads is no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { TROUBLE } else { OK });
        }
    };
    let result = match &cli.command {
        None => analyze::run(&cli.analyze),
        Some(Command::Analyze(args)) => analyze::run(args),
        Some(Command::Follow(args)) => follow::run(args),
        Some(Command::Digest(args)) => digest::run(args),
        Some(Command::Merge(args)) => digest::run_merge(args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::Events(args)) => events::run(args),
        Some(Command::Bundle(args)) => bundle::run(args),
        Some(Command::Redact(args)) => redact::run(args),
        Some(Command::Expect(args)) => expect::run(args),
        Some(Command::Collect(args)) => collect::run(args),
        Some(Command::Env(args)) => env::run(args),
        Some(Command::Fix(args)) => fix::run(args),
        Some(Command::Explain(args)) => explain::run(args),
        Some(Command::Completions(args)) => packaging::completions(args),
        Some(Command::Man(args)) => packaging::man(args),
        Some(Command::Schema(args)) => {
            let schema = match args.of {
                SchemaOf::Analysis => JSON_SCHEMA,
                SchemaOf::Diff => crate::diff::JSON_SCHEMA,
                SchemaOf::Events => crate::events::JSON_SCHEMA,
            };
            output::to_stdout(false, |out| out.write_all(schema.as_bytes())).map(|()| OK)
        }
    };
    ExitCode::from(result.unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        TROUBLE
    }))
}

/// What is expected: `--expect`, then the table `[expect]` of the configuration in force, which was read before.
fn expectations(args: &ExpectArg, config: &ConfigArgs) -> Result<Expectations> {
    let mut expected = Expectations::default();
    for text in &args.expect {
        expected.add(text).map_err(|e| anyhow!("--expect {e}"))?;
    }
    if let Some(path) = config.path() {
        let text = fs::read_to_string(&path).with_context(|| format!("{}: cannot be read; check its permissions", path.display()))?;
        expected.fill_from(parse_expectations(&text).map_err(|e| anyhow!("{}: {e}", path.display()))?);
    }
    Ok(expected)
}

/// One line on standard error. It may be closed, which must not stop the work.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "ncclog: {}", clean(text));
}

/// The candidate that a mistyped or shortened word most likely meant.
fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace(['_', ' '], "-");
    let score = |c: &str| if word.len() > 2 && c.contains(&word) { 1.0 } else { strsim::jaro_winkler(&word, c) };
    let scored = candidates.map(|c| (score(c), c));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, c)| c)
}

/// A path as the library takes it.
fn name(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8; rename the file", path.display()))
}

/// Paths as the library takes them.
fn names(paths: &[PathBuf]) -> Result<Vec<String>> {
    paths.iter().map(|p| name(p)).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_find_their_word() {
        let names = ["tcp-fallback", "gdr-disabled", "bootstrap-timeout"];
        let find = |word| nearest(word, names.into_iter());
        assert_eq!(find("tcp-falback"), Some("tcp-fallback"));
        assert_eq!(find("TCP_fallback"), Some("tcp-fallback"));
        assert_eq!(find("timeout"), Some("bootstrap-timeout"));
        assert_eq!(find("rank0.log"), None);
    }
}
