//! `ncclog analyze`, and `ncclog FILES`.

use super::args::{AnalyzeArgs, Cli};
use super::output::{self, report_options};
use super::progress::Bar;
use super::{complain, exit, expectations, nearest};
use crate::analysis::{Options, Outcome, Problem, analyze};
use crate::lang::{Lang, translate};
use crate::report::{self, Context, Format, FromFiles};
use crate::rules;
use anyhow::{Result, anyhow, bail};
use clap::{ColorChoice, CommandFactory};
use std::io::{self, IsTerminal, Write};

/// Analyses, reports, and gives the exit code.
pub fn run(args: &AnalyzeArgs) -> Result<u8> {
    let Some(inputs) = inputs(args)? else {
        let _ = writeln!(io::stderr(), "{}", Cli::command().render_help());
        return Ok(exit::TROUBLE);
    };
    let format = format(args)?;
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-");
    if let Some(path) = target {
        output::check(path)?;
        output::check_not_input(path, inputs.iter().map(String::as_str))?;
    }
    for name in &args.why_not {
        super::explain::find(name)?;
    }
    let redaction = args.redact.start(args.template.is_some())?;
    let user = args.config.load()?;
    let expect = expectations(&args.expect, &args.config)?;
    let bar = Bar::new(args.quiet);
    let Outcome { mut analysis, problems } = analyze(&Options { user, expect, refine: args.refine, ..args.limits.options(inputs) }, &bar);
    bar.finish();
    problems.iter().for_each(tell);
    analysis.why_not = args.why_not.iter().filter_map(|name| rules::why_not(&analysis, name)).collect();

    let color = args.color.color;
    // A path in a digest is one of another machine.
    let context = analysis.job.streams.iter().all(|s| s.from.is_empty());
    if let Some(path) = target {
        output::check_not_input(path, analysis.job.streams.iter().filter(|s| s.from.is_empty()).map(|s| s.path.as_str()))?;
    }
    let redacted = redaction.map(|r| r.report(&mut analysis)).transpose()?;
    let lang = lang(args, format);
    translate(lang, &mut analysis);
    let around = redacted.as_ref().map(|r| r.context(&analysis));
    let files: &dyn Context = around.as_ref().map_or(&FromFiles, |c| c);
    let context = context.then_some(files);
    if let Some(path) = target {
        let options = options(args, lang, context, report_options(args.width, false, args.quiet, color == ColorChoice::Always));
        output::to_file(path, |out| report::write(format, &analysis, out, &options))?;
    } else {
        let options = options(args, lang, context, report_options(args.width, true, args.quiet, output::use_color(color)));
        output::to_stdout(options.color, |out| report::write(format, &analysis, out, &options))?;
    }
    let status = exit::status(&analysis.findings, !problems.is_empty(), args.fail_on);
    // To free piece by piece what thousands of ranks said takes longer than the process has left.
    std::mem::forget(analysis);
    Ok(status)
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

/// A bug form is Markdown.
fn format(args: &AnalyzeArgs) -> Result<Format> {
    match (args.template, args.format) {
        (Some(_), Format::Text | Format::Markdown) => Ok(Format::Markdown),
        (Some(_), _) => bail!("--for fills a form in Markdown; leave --format out or give --format markdown"),
        (None, format) => Ok(format),
    }
}

/// The language of a report that people read. Programs get English, and so do those who read a project's bug form, unless
/// it was asked for by name.
fn lang(args: &AnalyzeArgs, format: Format) -> Lang {
    match format {
        Format::Text | Format::Markdown | Format::Html if args.template.is_none() => args.lang.get(),
        Format::Markdown => args.lang.lang.unwrap_or_default(),
        _ => Lang::En,
    }
}

/// What only `analyze` asks of a report.
fn options<'a>(args: &AnalyzeArgs, lang: Lang, context: Option<&'a dyn Context>, plain: report::Options<'a>) -> report::Options<'a> {
    report::Options { tree: args.tree, template: args.template, context, lang, ..plain }
}

/// One line for an input that failed. What looks like a mistyped subcommand is told so: bare words are files here.
fn tell(problem: &Problem) {
    complain(&format!("{}: {}", problem.path, problem.text));
    if problem.path.contains(['.', '/', '\\']) {
        return;
    }
    let cli = Cli::command();
    let commands = cli.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name);
    if let Some(command) = nearest(&problem.path, commands.chain(["help"])) {
        let call = if command == "help" { "ncclog --help".to_owned() } else { format!("ncclog {command}") };
        complain(&format!("did you mean `{call}`?"));
    }
}
