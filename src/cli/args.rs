//! The command line as clap sees it.

use super::bundle::{self, BundleArgs};
use super::collect::{self, CollectArgs};
use super::diff::{self, DiffArgs};
use super::digest::{self, DigestArgs, MergeArgs};
use super::env::{self, EnvArgs};
use super::events::{self, EventsArgs};
use super::exit::FailOn;
use super::expect::{self, ExpectArgs};
use super::fix::{self, FixArgs};
use super::follow::{self, FollowArgs};
use super::packaging::{self, CompletionsArgs, ManArgs};
use super::redact::{self, RedactArg, RedactArgs};
use crate::analysis::Options;
use crate::config;
use crate::lang::Lang;
use crate::report::{Format, Template};
use crate::rules::User;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  ncclog rank*.log                       one file a rank, or all ranks in one file
  ncclog analyze logs/ --format json     a whole directory, for a program
  kubectl logs job/train | ncclog        from a pipe
  ncclog explain                         the causes that it knows";

const EXIT_CODES: &str = "\
Exit codes:
  0  no finding at or above --fail-on
  1  a finding at or above --fail-on
  2  wrong usage, or an input or output failed (what could be read was still reported)

A good log: set NCCL_DEBUG=INFO and NCCL_DEBUG_FILE=/shared/nccl.%h.%p.log, give all files.";

const ANALYZE_EXAMPLES: &str = "\
Examples:
  ncclog analyze rank*.log
  ncclog analyze logs/ --format json --output report.json
  ncclog analyze --fail-on warning - < job.log";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ncclog explain                         list the causes
  ncclog explain tcp-fallback            what it is, how to tell, how to mend it
  ncclog explain --tree                  the questions that lead to the four founding causes
  ncclog explain --line 'node1:7:9 [0] NCCL WARN Call to ibv_modify_qp failed'";

const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "ncclog",
    version,
    about = "Names the root cause of a hanging, crashing or slow job from its NCCL or RCCL logs",
    before_help = EXAMPLES,
    after_help = EXIT_CODES,
    help_template = TEMPLATE,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Without a subcommand: analyze.
    #[command(flatten)]
    pub analyze: AnalyzeArgs,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Name the root cause (what `ncclog FILES` does, too)
    #[command(before_help = ANALYZE_EXAMPLES, after_help = EXIT_CODES, help_template = TEMPLATE, args_override_self = true)]
    Analyze(AnalyzeArgs),
    /// Watch a running job, or hold its start to a goal
    #[command(before_help = follow::EXAMPLES, after_help = follow::EXIT_CODES, help_template = TEMPLATE, args_override_self = true)]
    Follow(FollowArgs),
    /// List the causes, explain one, or explain a log line
    #[command(before_help = EXPLAIN_EXAMPLES, help_template = TEMPLATE, args_override_self = true)]
    Explain(ExplainArgs),
    /// Tell what changed between a run that worked and one that does not
    #[command(before_help = diff::EXAMPLES, after_help = diff::EXIT_CODES, help_template = TEMPLATE, args_override_self = true)]
    Diff(DiffArgs),
    /// Write down what logs say, small enough to be carried to where the job is analysed
    #[command(before_help = digest::EXAMPLES, after_help = digest::EXIT_CODES, help_template = TEMPLATE, args_override_self = true)]
    Digest(DigestArgs),
    /// Join digests
    #[command(before_help = digest::MERGE_EXAMPLES, after_help = digest::EXIT_CODES, help_template = TEMPLATE, args_override_self = true)]
    Merge(MergeArgs),
    /// Print every recognised event as a line of JSON
    #[command(before_help = events::EXAMPLES, help_template = TEMPLATE, args_override_self = true)]
    Events(EventsArgs),
    /// Write down what a good run looks like, for --expect
    #[command(before_help = expect::EXAMPLES, help_template = TEMPLATE, args_override_self = true)]
    Expect(ExpectArgs),
    /// Pack all that a bug report needs into one small file
    #[command(before_help = bundle::EXAMPLES, after_help = bundle::NOTES, help_template = TEMPLATE, args_override_self = true)]
    Bundle(BundleArgs),
    /// Replace names, addresses and secrets in logs, so that they can be shared
    #[command(before_help = redact::EXAMPLES, after_help = redact::NOTES, help_template = TEMPLATE, args_override_self = true)]
    Redact(RedactArgs),
    /// Read the facts of this host that decide what logs cannot
    #[command(before_help = collect::EXAMPLES, after_help = collect::NOTES, help_template = TEMPLATE, args_override_self = true)]
    Collect(CollectArgs),
    /// Print what to set: for a log that can be diagnosed, or to pin each node to its own names
    #[command(before_help = env::EXAMPLES, help_template = TEMPLATE, args_override_self = true)]
    Env(EnvArgs),
    /// Write the fixes of the findings for each node, with its own names
    #[command(before_help = fix::EXAMPLES, after_help = fix::NOTES, help_template = TEMPLATE, args_override_self = true)]
    Fix(FixArgs),
    /// Print the JSON Schema of `--format json`, of a line of `events`, or of `diff`
    Schema(SchemaArgs),
    /// Print the completions of a shell
    #[command(before_help = packaging::COMPLETIONS, help_template = TEMPLATE)]
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory
    #[command(before_help = packaging::MAN, help_template = TEMPLATE)]
    Man(ManArgs),
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Log files or digests, directories of them, quoted globs; `-` or nothing reads a pipe
    #[arg(value_name = "FILE|DIR|-")]
    pub inputs: Vec<PathBuf>,
    /// How to report: text, json, markdown, html, github, sarif, junit
    #[arg(long, value_enum, hide_possible_values = true, default_value_t)]
    pub format: Format,
    /// Fill a bug form in Markdown: nccl-issue, rccl-issue, vllm-issue
    #[arg(long = "for", value_enum, value_name = "FORM", hide_possible_values = true)]
    pub template: Option<Template>,
    /// Write the report to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What makes the exit code 1: error, warning (or worse), never
    #[arg(long, value_enum, value_name = "SEVERITY", hide_possible_values = true, default_value_t)]
    pub fail_on: FailOn,
    /// What must hold
    #[command(flatten)]
    pub expect: ExpectArg,
    /// What may be shown
    #[command(flatten)]
    pub redact: RedactArg,
    /// Print only the verdict, its proof and what to do next
    #[arg(long, short)]
    pub quiet: bool,
    /// Show how far the evidence leads down the decision tree of the founding causes
    #[arg(long)]
    pub tree: bool,
    /// Tell why CAUSE is not the finding; may be given several times
    #[arg(long, value_name = "CAUSE")]
    pub why_not: Vec<String>,
    /// Own rules and silences
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Read compressed logs twice, too, where that names the first differing collective
    #[arg(long)]
    pub refine: bool,
    /// Limits of reading
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Columns of the text report instead of the terminal's
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub width: Option<u16>,
    /// Language
    #[command(flatten)]
    pub lang: LangArg,
    /// Colours
    #[command(flatten)]
    pub color: ColorArg,
}

/// `--expect`, the same everywhere.
#[derive(Debug, Clone, Args)]
pub struct ExpectArg {
    /// What the logs must show, e.g. net=IB, hca=mlx5_0, nranks=16 (also [expect] in ncclog.toml); repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub expect: Vec<String>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// analysis (`--format json`), events or diff
    #[arg(value_enum, value_name = "OF", hide_possible_values = true, default_value_t)]
    pub of: SchemaOf,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// A whole report
    #[default]
    Analysis,
    /// One event
    Events,
    /// A comparison of two runs
    Diff,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of a cause; none lists them
    #[arg(value_name = "CAUSE", conflicts_with = "line")]
    pub cause: Option<String>,
    /// Language
    #[command(flatten)]
    pub lang: LangArg,
    /// The decision tree of the founding causes, with the commands that decide
    #[arg(long, conflicts_with_all = ["cause", "line"])]
    pub tree: bool,
    /// A log line to explain; `-` reads lines from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub line: Option<String>,
    /// Colours
    #[command(flatten)]
    pub color: ColorArg,
}

/// How much is read at once and in all, the same everywhere.
#[derive(Debug, Clone, Copy, Args)]
pub struct LimitArgs {
    /// Threads that parse; 0 takes one a core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub threads: u16,
    /// Most decoded bytes of one compressed file or pipe (500M, 20G); the rest is not read
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_bytes: Option<u64>,
}

impl LimitArgs {
    /// What to read, within the limits.
    pub fn options(self, inputs: Vec<String>) -> Options {
        Options { inputs, threads: usize::from(self.threads), max_bytes: self.max_bytes.unwrap_or(0), ..Options::default() }
    }
}

/// Which configuration is in force, the same everywhere.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// Own rules and silences from FILE instead of ./ncclog.toml or ~/.config/ncclog/ncclog.toml
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,
    /// Read no configuration
    #[arg(long)]
    pub no_config: bool,
}

impl ConfigArgs {
    /// Reads the configuration that is in force, if there is one.
    pub fn load(&self) -> Result<Option<Arc<User>>, config::Error> {
        self.path().map(|p| config::read(&p).map(Arc::new)).transpose()
    }

    /// The configuration that is in force, if there is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| if self.no_config { None } else { config::discover() })
    }
}

/// `--lang`, the same everywhere.
#[derive(Debug, Clone, Copy, Args)]
pub struct LangArg {
    /// Language for people: en, zh (Simplified Chinese); else that of LC_ALL, LC_MESSAGES or LANG. Programs get English
    #[arg(long, value_enum, value_name = "LANG", hide_possible_values = true)]
    pub lang: Option<Lang>,
}

impl LangArg {
    /// The language that was asked for, else that of the environment.
    pub fn get(self) -> Lang {
        self.lang.unwrap_or_else(Lang::of_environment)
    }
}

/// `--color`, the same everywhere.
#[derive(Debug, Clone, Copy, Args)]
pub struct ColorArg {
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// A number of bytes with K, M, G or T behind it, powers of 1000.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let digits = upper.trim_end_matches(['K', 'M', 'G', 'T', 'B']);
    let power = match &upper[digits.len()..] {
        "" | "B" => 0,
        "K" | "KB" => 1,
        "M" | "MB" => 2,
        "G" | "GB" => 3,
        "T" | "TB" => 4,
        _ => return Err("write a number with K, M, G or T behind it, such as 20G".to_owned()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1000u64.pow(power))).filter(|n| *n > 0);
    bytes.ok_or_else(|| "write a number with K, M, G or T behind it, such as 20G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_agrees() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bare_files_mean_analyze() {
        let cli = Cli::try_parse_from(["ncclog", "--format", "json", "a.log", "-"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.analyze.inputs, [PathBuf::from("a.log"), PathBuf::from("-")]);
        assert_eq!(cli.analyze.format, Format::Json);
    }

    #[test]
    fn a_file_named_like_a_subcommand_is_reachable() {
        let cli = Cli::try_parse_from(["ncclog", "analyze", "explain", "schema"]).unwrap();
        let Some(Command::Analyze(args)) = cli.command else { panic!("{cli:?}") };
        assert_eq!(args.inputs, [PathBuf::from("explain"), PathBuf::from("schema")]);
    }

    #[test]
    fn the_last_flag_wins() {
        let cli = Cli::try_parse_from(["ncclog", "analyze", "--fail-on", "never", "--fail-on", "warning", "x"]).unwrap();
        let Some(Command::Analyze(args)) = cli.command else { panic!("{cli:?}") };
        assert_eq!(args.fail_on, FailOn::Warning);
    }
}
