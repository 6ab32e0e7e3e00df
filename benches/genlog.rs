//! Writes made-up logs of a large job for measurements: `benches/genlog.sh --out DIR [--mix MIX] …`.

#[path = "corpus/mod.rs"]
mod corpus;

use corpus::{Content, Corpus};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

const USAGE: &str = "\
usage: benches/genlog.sh --out DIR [--mix coll|rccl|init|interleaved|small] [--files N] [--mb MB]
                             [--seed N] [--diverge RANK:N]

  coll         one file a rank: start-up, then collectives of three communicators (default)
  rccl         as coll, with calls as RCCL of ROCm 7 prints them
  init         one file a rank: start-up of communicators only, NET and GRAPH lines included
  interleaved  one file of N x MB that all N ranks share line by line
  small        as coll, but 4096 files of 0.2 MB
  --files      ranks (8); --mb: megabytes a rank (250); --diverge: RANK issues another operation as its N-th";

/// What the command line asked for.
struct Options {
    out: PathBuf,
    mix: String,
    files: Option<u32>,
    mb: Option<f64>,
    seed: u64,
    diverge: Option<(u32, u64)>,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(Some(options)) => run(&options).map_or_else(
            |error| {
                eprintln!("genlog: {}: {error}", options.out.display());
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
        // A plain `cargo bench` runs every bench: nothing was asked of this one.
        Ok(None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("genlog: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options { out: PathBuf::new(), mix: "coll".into(), files: None, mb: None, seed: 1, diverge: None };
    while let Some(name) = args.next() {
        // Cargo adds this one.
        if name == "--bench" {
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let bad = || format!("{name}: cannot read {value}");
        match name.as_str() {
            "--out" => options.out = PathBuf::from(&value),
            "--mix" if ["coll", "rccl", "init", "interleaved", "small"].contains(&value.as_str()) => options.mix.clone_from(&value),
            "--files" => options.files = Some(value.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?),
            "--mb" => options.mb = Some(value.parse().ok().filter(|mb| *mb > 0.0).ok_or_else(bad)?),
            "--seed" => options.seed = value.parse().map_err(|_| bad())?,
            "--diverge" => {
                let (rank, nth) = value.split_once(':').ok_or_else(bad)?;
                options.diverge = Some((rank.parse().map_err(|_| bad())?, nth.parse().map_err(|_| bad())?));
            }
            _ => return Err(format!("{name} {value}: not understood")),
        }
    }
    Ok((!options.out.as_os_str().is_empty()).then_some(options))
}

fn run(options: &Options) -> io::Result<()> {
    let small = options.mix == "small";
    let ranks = options.files.unwrap_or(if small { 4096 } else { 8 });
    let bytes = (options.mb.unwrap_or(if small { 0.2 } else { 250.0 }) * 1e6) as u64;
    let corpus = Corpus { ranks, seed: options.seed, diverge: options.diverge, rccl: options.mix == "rccl" };
    std::fs::create_dir_all(&options.out)?;
    let start = Instant::now();
    let total = if options.mix == "interleaved" {
        let mut file = File::create(options.out.join("all.log"))?;
        corpus.interleaved(&corpus.plan(bytes), &mut file)?;
        file.metadata()?.len()
    } else {
        let plan = corpus.plan(bytes);
        let content = if options.mix == "init" { Content::Init(bytes) } else { Content::Collectives(&plan) };
        write_ranks(&corpus, content, &options.out)?
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.0} MB in {} ({seconds:.2} s, {:.0} MB/s)", total as f64 / 1e6, options.out.display(), total as f64 / 1e6 / seconds);
    Ok(())
}

/// Writes one file a rank on all cores; the sum of their sizes.
fn write_ranks(corpus: &Corpus, content: Content<'_>, out: &Path) -> io::Result<u64> {
    let next = AtomicU32::new(0);
    let work = || -> io::Result<u64> {
        let mut total = 0;
        loop {
            let rank = next.fetch_add(1, Ordering::Relaxed);
            if rank >= corpus.ranks {
                return Ok(total);
            }
            let mut file = File::create(out.join(format!("rank{rank}.log")))?;
            corpus.rank(rank, content, &mut file)?;
            total += file.metadata()?.len();
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..thread::available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(io::Error::other("a writer panicked")))).sum()
    })
}
