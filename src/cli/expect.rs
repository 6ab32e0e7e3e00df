//! `ncclog expect`: writes the `[expect]` table that a good run's logs hold.

use super::output;
use super::{complain, exit};
use crate::analysis::{Options, analyze};
use crate::expect::write;
use crate::rules::{Verdict, expected};
use anyhow::{Result, anyhow};
use clap::Args;
use std::path::PathBuf;

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  ncclog expect --from good.log                        print the table [expect]
  ncclog expect --from logs/ --output ncclog.toml      keep it where analyze and follow find it";

/// Arguments of `expect`.
#[derive(Debug, Args)]
pub struct ExpectArgs {
    /// Logs of a run that was good: files, directories, quoted globs
    #[arg(long, value_name = "FILE|DIR", required = true, num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Write to FILE instead of standard output; it must not exist yet
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Learns and writes.
pub fn run(args: &ExpectArgs) -> Result<u8> {
    let inputs = args.from.iter().map(|p| p.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8", p.display()))).collect::<Result<_>>()?;
    let outcome = analyze(&Options { inputs, ..Options::default() }, &crate::analysis::Silent);
    for problem in &outcome.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    if !outcome.problems.is_empty() {
        return Ok(exit::TROUBLE);
    }
    if matches!(outcome.analysis.verdict, Verdict::Failed | Verdict::Stalled) {
        complain("this run was not good; run `ncclog analyze` on it first. The table below says what its logs show");
    }
    let learnt = expected(&outcome.analysis.job);
    if learnt.is_empty() {
        return Err(anyhow!("these logs show nothing that a run could be held to; give the logs of a good run with NCCL_DEBUG=INFO"));
    }
    let text = write(&learnt);
    match &args.output {
        None => output::to_stdout(false, |out| out.write_all(text.as_bytes()))?,
        Some(path) if path.exists() => {
            return Err(anyhow!("{}: exists already and may hold more than expectations; choose another file, or add the printed table by hand", path.display()));
        }
        Some(path) => {
            output::check(path)?;
            output::to_file(path, |out| out.write_all(text.as_bytes()))?;
        }
    }
    Ok(exit::OK)
}
