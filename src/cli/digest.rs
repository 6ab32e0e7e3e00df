//! `ncclog digest` and `ncclog merge`: what a node's logs say, in a file that can be analysed anywhere.

use super::args::{ConfigArgs, LimitArgs};
use super::output;
use super::progress::Bar;
use super::{complain, exit, names};
use crate::analysis::{Options, Reading, merge, read};
use crate::digest::disk;
use anyhow::{Result, bail};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What stands in front of the options of `digest`.
pub const EXAMPLES: &str = "\
Examples:
  ncclog digest rank*.log -o node7.digest         on each node, where its logs lie
  ncclog analyze *.digest                         anywhere: the findings of the logs
  srun -N 4 --ntasks-per-node=1 sh -c 'ncclog digest /tmp/nccl.*.log -o $HOME/job/$(hostname).digest'";

/// What stands in front of the options of `merge`.
pub const MERGE_EXAMPLES: &str = "\
Examples:
  ncclog merge rack1/*.digest -o rack1.digest     in any order and in stages
  ncclog merge rack*.digest -o job.digest";

/// Exit codes of both.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  written
  2  wrong usage, or an input or output failed (digest still writes what could be read, merge does not)";

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub struct DigestArgs {
    /// Log files, directories, quoted globs, digests; `-` reads a pipe
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Write the digest to FILE; `-` is standard output
    #[arg(long, short, value_name = "FILE", required = true)]
    pub output: PathBuf,
    /// Own rules, whose patterns are looked for
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Limits of reading
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Digests, directories of them, quoted globs
    #[arg(value_name = "DIGEST|DIR", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Write the digest to FILE; `-` is standard output
    #[arg(long, short, value_name = "FILE", required = true)]
    pub output: PathBuf,
}

/// Reads logs and writes their digest.
pub fn run(args: &DigestArgs) -> Result<u8> {
    let inputs = names(&args.inputs)?;
    output::check_packed(&args.output, "a digest", &inputs)?;
    let user = args.config.load()?;
    let bar = Bar::new(false);
    let reading = read(&Options { user, ..args.limits.options(inputs) }, &bar);
    bar.finish();
    tell(&reading);
    if reading.digest.streams.is_empty() {
        bail!("none of the inputs could be read; no digest was written");
    }
    write(&args.output, &reading)?;
    Ok(if reading.problems.is_empty() { exit::OK } else { exit::TROUBLE })
}

/// Joins digests. One that is missing would make the whole a lie, so nothing is written then.
pub fn run_merge(args: &MergeArgs) -> Result<u8> {
    let inputs = names(&args.inputs)?;
    output::check_packed(&args.output, "a digest", &inputs)?;
    let reading = merge(&inputs);
    tell(&reading);
    if !reading.problems.is_empty() {
        bail!("{} of the inputs could not be used; no digest was written", reading.problems.len());
    }
    write(&args.output, &reading)?;
    Ok(exit::OK)
}

fn tell(reading: &Reading) {
    for problem in &reading.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    reading.notes.iter().for_each(|n| complain(n));
}

fn write(target: &Path, reading: &Reading) -> Result<()> {
    let put = |out: &mut dyn Write| disk::write(&reading.digest, out);
    if target.as_os_str() == "-" {
        return output::to_stdout(false, put);
    }
    let local = reading.digest.streams.iter().filter(|s| s.from.is_empty());
    output::check_not_input(target, local.map(|s| s.path.as_str()))?;
    output::to_file(target, put)
}
