//! `ncclog env`: ready lines for the environment.

use super::output::to_stdout;
use super::{complain, exit};
use crate::analysis::{Options, Silent, analyze};
use crate::settings::{Flavour, Situation, debug, pins, write};
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  eval \"$(ncclog env)\"                   this shell: a log that can be diagnosed (the same as `env debug`)
  ncclog env hang --for slurm            every call of every rank, too
  ncclog env --for docker > nccl.env     for docker run --env-file nccl.env
  ncclog env rank*.log node*.txt         each node's own interface, HCA, address and GID, from its facts";

/// Arguments of `env`.
#[derive(Debug, Args)]
pub struct EnvArgs {
    /// debug (nothing means that), hang, or files with the facts of the nodes (and logs)
    #[arg(value_name = "debug|hang|FILES")]
    pub inputs: Vec<PathBuf>,
    /// Where it is used: shell, docker, slurm, k8s, ray, vllm
    #[arg(long = "for", value_enum, value_name = "PLACE", hide_possible_values = true, default_value_t)]
    pub flavour: Flavour,
    /// Folder for the log files of the ranks
    #[arg(long, value_name = "DIR")]
    pub logs: Option<String>,
}

/// Prints the lines.
pub fn run(args: &EnvArgs) -> Result<u8> {
    let names = args.inputs.iter().map(|p| p.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8", p.display())));
    let names = names.collect::<Result<Vec<_>>>()?;
    let situation = match names.as_slice() {
        [] => Some(Situation::Debug),
        [word] => Situation::from_str(word, false).ok(),
        _ => None,
    };
    if let Some(situation) = situation {
        if args.logs.as_deref().is_some_and(|d| d.starts_with('~')) {
            bail!("--logs: NCCL does not know `~`; give an absolute path");
        }
        let sheet = debug(situation, args.flavour, args.logs.as_deref());
        to_stdout(false, |out| write(&sheet, args.flavour, out))?;
        return Ok(exit::OK);
    }
    if args.logs.is_some() {
        bail!("--logs belongs to `ncclog env debug` and `ncclog env hang`");
    }
    of_facts(names, args.flavour)
}

fn of_facts(inputs: Vec<String>, flavour: Flavour) -> Result<u8> {
    let outcome = analyze(&Options { inputs, ..Options::default() }, &Silent);
    for problem in &outcome.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    let job = &outcome.analysis.job;
    let mut sheet = pins(job);
    if sheet.blocks.is_empty() {
        for text in &sheet.tail {
            complain(text);
        }
        if job.facts.is_empty() {
            bail!("the files hold no facts of hosts; run `ncclog collect -o FACTS.txt` on each node and give these files, too");
        }
        bail!("the facts show no RDMA port with an address that the nodes share, so there is nothing to pin them to");
    }
    sheet.head.push("Each node's own names, by its facts. Nothing has been run or changed.".to_owned());
    to_stdout(false, |out| write(&sheet, flavour, out))?;
    Ok(if outcome.problems.is_empty() { exit::OK } else { exit::TROUBLE })
}
