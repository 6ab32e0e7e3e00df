//! `ncclog bundle`: what a bug report needs, in one small file.

use super::args::{ConfigArgs, LimitArgs};
use super::progress::Bar;
use super::redact::{RedactArg, Redaction};
use super::{complain, exit, names, output};
use crate::analysis::{Options, Outcome, Reading, conclude, read, redact_analysis, redact_digest};
use crate::bundle::{Bundle, Excerpts, Input, LeftOut, Manifest, SCHEMA};
use crate::digest::{Digest, StreamInfo};
use crate::redact::Found;
use crate::report::{self, Format, surroundings};
use crate::rules::{Analysis, Evidence};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "\
Examples:
  ncclog bundle rank*.log -o case.tar.zst      gigabytes of logs, a few hundred kilobytes
  ncclog analyze case.tar.zst                  anywhere: the findings of the logs";

pub const NOTES: &str = "\
In it: the report (Markdown and JSON), a digest of the logs, and the lines that matter with their numbers.
Names, addresses and secrets are replaced (docs/redaction.md). Unpack it and look before you share it:
  tar -xf case.tar.zst

Exit codes:
  0  written
  2  wrong usage, or an input or output failed (what could be read is in the bundle)";

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// Log files, directories of them, quoted globs, digests; `-` reads a pipe
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Write the bundle to FILE; `-` is standard output
    #[arg(long, short, value_name = "FILE", required = true)]
    pub output: PathBuf,
    /// Replace FILE if it is there already
    #[arg(long)]
    pub force: bool,
    /// What may be in it
    #[command(flatten)]
    pub redact: RedactArg,
    /// Own rules and silences
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Limits of reading
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Reads, analyses, redacts and packs.
pub fn run(args: &BundleArgs) -> Result<u8> {
    let inputs = names(&args.inputs)?;
    check(args, &inputs)?;
    let redaction = args.redact.start(true)?;
    let user = args.config.load()?;
    let bar = Bar::new(false);
    let options = Options { user, ..args.limits.options(inputs) };
    let mut reading = read(&options, &bar);
    bar.finish();
    for problem in &reading.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    if reading.digest.streams.is_empty() {
        bail!("none of the inputs could be read; no bundle was written");
    }
    crate::digest::name_apart(&mut reading.digest.streams);
    let digest = reading.digest.clone();
    let problems: Vec<String> = reading.problems.iter().map(|p| format!("{}: {}", p.path, p.text)).collect();
    let trouble = !problems.is_empty();
    let Outcome { analysis, .. } = conclude(Reading { digest: reading.digest, notes: reading.notes, ..Reading::default() }, &options);
    let parts = Parts { digest, analysis, problems };
    write(args, parts, redaction)?;
    Ok(if trouble { exit::TROUBLE } else { exit::OK })
}

/// What was found out.
struct Parts {
    digest: Digest,
    analysis: Analysis,
    problems: Vec<String>,
}

fn check(args: &BundleArgs, inputs: &[String]) -> Result<()> {
    let target = &args.output;
    output::check_packed(target, "a bundle", inputs)?;
    if target.as_os_str() != "-" && target.is_file() && !args.force {
        bail!("{}: is there already; choose another --output, or replace it with --force", target.display());
    }
    Ok(())
}

fn write(args: &BundleArgs, mut parts: Parts, redaction: Option<Redaction>) -> Result<()> {
    let here: BTreeMap<String, bool> = parts.digest.streams.iter().map(|s| (s.path.clone(), s.from.is_empty())).collect();
    let sums: Vec<Option<String>> = parts.digest.streams.par_iter().map(checksum).collect();
    let local = |evidence: &Evidence| here.get(&evidence.file).copied().unwrap_or(false);
    let redacted = redaction.is_some();
    let excerpts = match redaction {
        None => Excerpts::new(&parts.analysis, &parts.digest, &mut |e| if local(e) { near(e, &|l| l.to_owned()) } else { Vec::new() }),
        Some(mut redaction) => {
            let found = RefCell::new(Found::default());
            let evidence: Vec<Evidence> = crate::analysis::all_evidence(&parts.analysis).cloned().collect();
            let learn = |line: &str| {
                found.borrow_mut().read(line.as_bytes(), &redaction.redactor);
                String::new()
            };
            for e in evidence.iter().filter(|e| local(e)) {
                near(e, &learn);
            }
            for problem in &parts.problems {
                learn(problem);
            }
            redaction.redactor.join([found.take()]);
            redact_digest(&mut parts.digest, &mut redaction.redactor);
            redact_analysis(&mut parts.analysis, &mut redaction.redactor);
            let redactor = &redaction.redactor;
            parts.problems.iter_mut().for_each(|p| *p = redactor.text(p).into_owned());
            // Findings keep their order, so the true places are met in the order of the redacted ones.
            let mut places = evidence.into_iter();
            let mut around = |_: &Evidence| places.next().filter(|e| local(e)).map(|e| near(&e, &|l| redactor.text(l).into_owned())).unwrap_or_default();
            let excerpts = Excerpts::new(&parts.analysis, &parts.digest, &mut around);
            redaction.keep("the bundle is redacted")?;
            excerpts
        }
    };
    pack(args, &parts, sums, excerpts, redacted)
}

/// The lines around a piece of evidence with their numbers.
fn near(evidence: &Evidence, show: &dyn Fn(&str) -> String) -> Vec<(u64, String)> {
    let Ok(around) = surroundings(evidence, show) else { return Vec::new() };
    let first = evidence.line.saturating_sub(around.before.len() as u64);
    let before = around.before.into_iter().enumerate().map(|(i, l)| (first + i as u64, l));
    before.chain(around.after.into_iter().enumerate().map(|(i, l)| (evidence.line + 1 + i as u64, l))).collect()
}

/// The checksum of a stream's file; none where that is no plain file here.
fn checksum(stream: &StreamInfo) -> Option<String> {
    let path = Path::new(&stream.path);
    if !stream.from.is_empty() || !path.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut hash = twox_hash::XxHash3_128::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(format!("{:032x}", hash.finish_128())),
            n => hash.write(&buffer[..n]),
        }
    }
}

fn pack(args: &BundleArgs, parts: &Parts, sums: Vec<Option<String>>, excerpts: Excerpts, redacted: bool) -> Result<()> {
    let report = |format| {
        let mut out = Vec::new();
        report::write(format, &parts.analysis, &mut out, &report::Options::default()).context("the report cannot be made").map(|()| out)
    };
    let (json, markdown) = (report(Format::Json)?, report(Format::Markdown)?);
    let streams = &parts.digest.streams;
    let lines: u64 = streams.iter().map(|s| s.lines).sum();
    let manifest = Manifest {
        schema: SCHEMA,
        tool: concat!("ncclog ", env!("CARGO_PKG_VERSION")).to_owned(),
        redacted,
        inputs: streams.iter().zip(sums).map(|(s, xxh3)| Input { path: s.path.clone(), bytes: s.bytes, lines: s.lines, xxh3 }).collect(),
        problems: parts.problems.clone(),
        members: Vec::new(),
        left_out: LeftOut { lines: lines.saturating_sub(excerpts.len()), over_bound: excerpts.over_bound },
    };
    let bundle = Bundle { manifest, digest: &parts.digest, json, markdown, excerpts };
    if args.output.as_os_str() == "-" {
        return output::to_stdout(false, |out| bundle.write(out));
    }
    output::to_file(&args.output, |out| bundle.write(out))
}
