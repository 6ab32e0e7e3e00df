//! `ncclog diff GOOD BAD`.

use super::args::{ColorArg, ConfigArgs};
use super::output;
use super::progress::Bar;
use super::redact::RedactArg;
use super::{complain, exit, name};
use crate::analysis::{Options, Outcome, analyze};
use crate::diff::{self, Format};
use anyhow::{Result, bail};
use clap::{Args, ColorChoice};
use std::path::{Path, PathBuf};

/// What stands in front of the options.
pub const EXAMPLES: &str = "\
Examples:
  ncclog diff good/ bad/                           two directories of logs
  ncclog diff monday.digest tuesday.digest         two digests
  ncclog diff 'good/rank*.log' bad.log --format json";

/// What stands behind the options.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  no difference that may matter
  1  a difference that may matter
  2  wrong usage, or one of the sides could not be read";

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The run that worked: a file, directory, quoted glob, digest or archive
    #[arg(value_name = "GOOD")]
    pub good: PathBuf,
    /// The run that does not
    #[arg(value_name = "BAD")]
    pub bad: PathBuf,
    /// How to report: text, json, markdown
    #[arg(long, value_enum, hide_possible_values = true, default_value_t)]
    pub format: Format,
    /// Write the report to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Redaction
    #[command(flatten)]
    pub redact: RedactArg,
    /// Own rules and silences
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Columns of the text report instead of the terminal's
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub width: Option<u16>,
    /// Colours
    #[command(flatten)]
    pub color: ColorArg,
}

/// Analyses both, compares, reports, and gives the exit code.
pub fn run(args: &DiffArgs) -> Result<u8> {
    let (good, bad) = (name(&args.good)?, name(&args.bad)?);
    if good == "-" && bad == "-" {
        bail!("standard input can be one of the runs only; give a file for the other");
    }
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    if let Some(path) = target {
        output::check(path)?;
        output::check_not_input(path, [good.as_str(), &bad].into_iter())?;
    }
    let redaction = args.redact.start(false)?;
    let user = args.config.load()?;
    let side = |input: &str| {
        let bar = Bar::new(false);
        let outcome = analyze(&Options { inputs: vec![input.to_owned()], user: user.clone(), ..Options::default() }, &bar);
        bar.finish();
        outcome
    };
    let (mut before, mut after) = (side(&good), side(&bad));
    let trouble = [&before, &after].into_iter().filter(|o| told(o)).count() > 0;
    for (name, outcome) in [(&good, &before), (&bad, &after)] {
        if outcome.analysis.job.streams.iter().all(|s| s.events == 0) {
            complain(&format!("{name}: holds no line of NCCL, RCCL, a framework or the kernel; there is nothing to compare"));
            return Ok(exit::TROUBLE);
        }
    }
    if let Some(path) = target {
        let read = [&before, &after].into_iter().flat_map(|o| &o.analysis.job.streams).filter(|s| s.from.is_empty());
        output::check_not_input(path, read.map(|s| s.path.as_str()))?;
    }
    let redactor = redaction.map(|r| r.both([&mut before.analysis, &mut after.analysis])).transpose()?;
    let mut diff = diff::compare((&good, &before.analysis), (&bad, &after.analysis));
    if let Some(redactor) = redactor {
        for side in [&mut diff.good, &mut diff.bad] {
            side.name = redactor.path(&side.name);
        }
        // What only the one side names may stand in the other's texts.
        diff.each_text(&mut |text| *text = redactor.words(text).into_owned());
    }
    write(args, target, &diff)?;
    Ok(match (trouble, diff.matters()) {
        (true, _) => exit::TROUBLE,
        (false, true) => exit::FOUND,
        (false, false) => exit::OK,
    })
}

/// Tells what could not be read; whether there was something.
fn told(outcome: &Outcome) -> bool {
    for problem in &outcome.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    !outcome.problems.is_empty()
}

fn write(args: &DiffArgs, target: Option<&Path>, diff: &diff::Diff) -> Result<()> {
    let color = args.color.color;
    if let Some(path) = target {
        let options = output::report_options(args.width, false, false, color == ColorChoice::Always);
        return output::to_file(path, |out| diff::write(args.format, diff, out, options.width, options.color));
    }
    let color = output::use_color(color) && args.format == Format::Text;
    let options = output::report_options(args.width, true, false, color);
    output::to_stdout(options.color, |out| diff::write(args.format, diff, out, options.width, options.color))
}
