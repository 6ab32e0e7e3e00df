//! `ncclog redact`, and `--redact` of the commands that report.

mod copy;
mod targets;

use super::output;
use super::{complain, exit};
use crate::analysis::{RedactedContext, all_evidence, redact_analysis};
use crate::input::{self, Problem};
use crate::redact::{Found, MapFile, Redactor};
use crate::rules::{Analysis, Evidence};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use copy::{Copied, learn, write};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "\
Examples:
  ncclog redact rank*.log -o public/     one redacted copy of each, under the same name
  ncclog redact logs/ -o public/ --redact-map private.json
  kubectl logs job/train | ncclog redact -";

pub const NOTES: &str = "\
Replaced by stable pseudonyms: hosts, users, directories, IP and MAC addresses, GUIDs, UUIDs, tokens and passwords.
Kept, because they are evidence: ranks, ports, interfaces, HCAs, subnets, versions, settings, program file names.
Copies are plain text, also of compressed logs. Look them over before you share them: no program knows every secret.

Exit codes:
  0  all was redacted
  2  wrong usage, or an input or output failed (what could be read was redacted)";

/// Arguments of `redact`.
#[derive(Debug, Args)]
pub struct RedactArgs {
    /// Log files, directories of them, quoted globs; `-` copies a pipe to standard output
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Write the copies into DIR
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace copies that are there already
    #[arg(long)]
    pub force: bool,
    /// Take the pseudonyms from FILE if it exists, and keep them there; it undoes the redaction, so keep it private
    #[arg(long, value_name = "FILE")]
    pub redact_map: Option<PathBuf>,
    /// Threads; 0 takes one a core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub threads: u16,
}

/// `--redact`, the same for all reports.
#[derive(Debug, Clone, Args)]
pub struct RedactArg {
    /// Replace names, addresses and secrets by pseudonyms (always with --for)
    #[arg(long, overrides_with = "no_redact")]
    pub redact: bool,
    /// Show them, also with --for
    #[arg(long, overrides_with = "redact")]
    pub no_redact: bool,
    /// Take the pseudonyms from FILE if it exists, and keep them there; keep it private
    #[arg(long, value_name = "FILE", conflicts_with = "no_redact")]
    pub redact_map: Option<PathBuf>,
}

impl RedactArg {
    /// The redaction that is asked for, its map read.
    pub fn start(&self, by_default: bool) -> Result<Option<Redaction>> {
        if self.no_redact || !(self.redact || by_default || self.redact_map.is_some()) {
            return Ok(None);
        }
        Redaction::new(self.redact_map.as_deref()).map(Some)
    }
}

/// A redaction under way.
#[derive(Debug)]
pub struct Redaction {
    /// What it knows.
    pub redactor: Redactor,
    map: Option<MapFile>,
}

impl Redaction {
    /// One with the map at `path`.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { redactor: Redactor::default(), map: None }) };
        output::check(path)?;
        let map = MapFile::new(path);
        let redactor = map.read().with_context(|| format!("{}: cannot be used as map; name a map that ncclog wrote, or a file that does not exist yet", path.display()))?;
        Ok(Self { redactor, map: Some(map) })
    }

    /// Writes the map, if there is one, and says how it went.
    pub fn keep(&self, what: &str) -> Result<()> {
        let Some(map) = &self.map else {
            complain(&format!("{what}; look it over before you share it"));
            return Ok(());
        };
        let path = map.path().display();
        map.write(&self.redactor).with_context(|| format!("{path}: cannot be written; check the permissions and the room there, or choose another --redact-map"))?;
        complain(&format!("{what}; look it over before you share it. {path} undoes it: keep it private"));
        Ok(())
    }

    /// Redacts an analysis before it is reported.
    pub fn report(mut self, analysis: &mut Analysis) -> Result<Redacted> {
        let before = all_evidence(analysis).cloned().collect();
        redact_analysis(analysis, &mut self.redactor);
        self.keep("the report is redacted")?;
        Ok(Redacted { redactor: self.redactor, before })
    }
}

impl Redaction {
    /// Redacts two analyses that are compared, alike; what is left can be looked up in the redactor.
    pub fn both(mut self, sides: [&mut Analysis; 2]) -> Result<Redactor> {
        for side in sides {
            redact_analysis(side, &mut self.redactor);
        }
        self.keep("the report is redacted")?;
        Ok(self.redactor)
    }
}

/// What is needed to show lines around the evidence of a redacted analysis.
#[derive(Debug)]
pub struct Redacted {
    redactor: Redactor,
    before: Vec<Evidence>,
}

impl Redacted {
    /// The lines around the evidence of `analysis`.
    pub fn context(&self, analysis: &Analysis) -> RedactedContext<'_> {
        RedactedContext::new(&self.redactor, self.before.clone(), analysis)
    }
}

/// Copies logs, redacted.
pub fn run(args: &RedactArgs) -> Result<u8> {
    let redaction = Redaction::new(args.redact_map.as_deref())?;
    let Some(dir) = &args.output else {
        if args.inputs.len() != 1 || args.inputs[0].as_os_str() != "-" {
            bail!("say where the copies go with -o DIR (only `ncclog redact -` writes to standard output)");
        }
        return pipe(redaction);
    };
    if args.inputs.iter().any(|p| p.as_os_str() == "-") {
        bail!("a pipe has no name for its copy; run `ncclog redact - > FILE`");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(args.threads)).build()?;
    pool.install(|| files(args, dir, redaction))
}

fn pipe(mut redaction: Redaction) -> Result<u8> {
    let mut failed = None;
    output::to_stdout(false, |out| copy::stream(&mut std::io::stdin().lock(), &mut redaction.redactor, out).map(|copied| failed = copied.0))?;
    if let Some(text) = &failed {
        complain(&format!("-: {text}"));
    }
    redaction.keep("the output is redacted")?;
    Ok(if failed.is_none() { exit::OK } else { exit::TROUBLE })
}

fn files(args: &RedactArgs, dir: &Path, mut redaction: Redaction) -> Result<u8> {
    let names: Vec<String> = args.inputs.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    let resolved = input::resolve(&names);
    let mut problems = resolved.problems;
    let paths: Vec<PathBuf> = resolved.sources.iter().filter_map(|s| if let input::Source::File(path) = s { Some(path.clone()) } else { None }).collect();
    if dir.exists() && !dir.is_dir() {
        bail!("{}: is no directory; choose another -o DIR", dir.display());
    }
    let learnt: Vec<_> = paths.par_iter().map(|p| learn(p, &redaction.redactor)).collect();
    let mut whole = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    for (path, result) in paths.into_iter().zip(learnt) {
        match result {
            Ok(part) => {
                found.push(part);
                whole.push(path);
            }
            Err(error) => problems.push(Problem { path: path.display().to_string(), text: error.to_string() }),
        }
    }
    redaction.redactor.join(found);
    let targets = targets::name(&whole, dir, &redaction.redactor);
    if !args.force
        && let Some(path) = targets.iter().find(|t| t.exists())
    {
        bail!("{}: is there already; choose another -o DIR, or replace it with --force", path.display());
    }
    for (source, target) in whole.iter().zip(&targets) {
        let folder = target.parent().unwrap_or(dir);
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created; check the permissions there or choose another -o DIR", folder.display()))?;
        output::check_not_input(target, std::iter::once(&*source.to_string_lossy()))?;
    }
    let done: Vec<Result<Copied>> = whole.par_iter().zip(&targets).map(|(from, to)| write(from, to, &redaction.redactor)).collect();
    let mut count = 0;
    for (path, result) in whole.iter().zip(done) {
        match result {
            Ok(Copied(failed)) => {
                count += 1;
                problems.extend(failed.map(|text| Problem { path: path.display().to_string(), text }));
            }
            Err(error) => problems.push(Problem { path: path.display().to_string(), text: format!("{error:#}") }),
        }
    }
    for p in &problems {
        complain(&format!("{}: {}", p.path, p.text));
    }
    if count > 0 {
        let copies = crate::report::plural(count, "file");
        redaction.keep(&format!("{copies} redacted into {}", dir.display()))?;
    }
    Ok(if problems.is_empty() { exit::OK } else { exit::TROUBLE })
}
