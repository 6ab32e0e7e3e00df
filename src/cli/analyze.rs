//! `ncclog analyze`, and `ncclog FILES`.

use super::args::{AnalyzeArgs, Cli};
use super::progress::Bar;
use super::{complain, exit, nearest, output};
use crate::analysis::{Options, Outcome, Problem, analyze};
use crate::report::{self, DEFAULT_WIDTH, MIN_WIDTH, PROSE_WIDTH};
use anyhow::{Result, anyhow};
use clap::{ColorChoice, CommandFactory};
use std::io::{self, IsTerminal, Write};

/// Analyses, reports, and gives the exit code.
pub fn run(args: &AnalyzeArgs) -> Result<u8> {
    let Some(inputs) = inputs(args)? else {
        let _ = writeln!(io::stderr(), "{}", Cli::command().render_help());
        return Ok(exit::TROUBLE);
    };
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    if let Some(path) = target {
        output::check(path)?;
        output::check_not_input(path, inputs.iter().map(String::as_str))?;
    }
    let bar = Bar::new(args.quiet);
    let Outcome { analysis, problems } = analyze(&Options { inputs, threads: usize::from(args.threads), block_size: 0, max_bytes: args.max_bytes.unwrap_or(0) }, &bar);
    bar.finish();
    problems.iter().for_each(tell);

    let color = args.color.color;
    if let Some(path) = target {
        output::check_not_input(path, analysis.job.streams.iter().map(|s| s.path.as_str()))?;
        let options = options(args, color == ColorChoice::Always);
        output::to_file(path, |out| report::write(args.format, &analysis, out, &options))?;
    } else {
        let options = options(args, output::use_color(color));
        output::to_stdout(options.color, |out| report::write(args.format, &analysis, out, &options))?;
    }
    Ok(exit::status(&analysis.findings, !problems.is_empty(), args.fail_on))
}

/// The inputs; `None` if there is none and nothing can come from standard input.
fn inputs(args: &AnalyzeArgs) -> Result<Option<Vec<String>>> {
    if args.inputs.is_empty() {
        return Ok((!io::stdin().is_terminal()).then(|| vec!["-".to_owned()]));
    }
    let name =
        |p: &std::path::PathBuf| p.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8; rename the file or send it through a pipe", p.display()));
    args.inputs.iter().map(name).collect::<Result<_>>().map(Some)
}

fn options(args: &AnalyzeArgs, color: bool) -> report::Options {
    let width = match args.width {
        Some(width) => usize::from(width),
        None if args.output.is_some() => DEFAULT_WIDTH,
        None => output::terminal_width().map_or(DEFAULT_WIDTH, |w| w.clamp(MIN_WIDTH, PROSE_WIDTH)),
    };
    report::Options { width, color, brief: args.quiet }
}

/// One line for an input that failed. What looks like a mistyped subcommand is told so: bare words are files here.
fn tell(problem: &Problem) {
    complain(&format!("{}: {}", problem.path, problem.text));
    if problem.path.contains(['.', '/', '\\']) {
        return;
    }
    let commands = ["analyze", "explain", "schema", "help"];
    if let Some(command) = nearest(&problem.path, commands.into_iter()) {
        let call = if command == "help" { "ncclog --help".to_owned() } else { format!("ncclog {command}") };
        complain(&format!("did you mean `{call}`?"));
    }
}
