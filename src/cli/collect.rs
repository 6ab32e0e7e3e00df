//! `ncclog collect`: this host's facts, for `analyze`.

use super::follow::duration;
use super::output::{self, to_stdout};
use super::{complain, exit};
use crate::collect::{Call, End, MAGIC, PROBES, Section, collect, header, script, shown};
use crate::report::{DEFAULT_WIDTH, wrap};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  ncclog collect -o node7.txt            this host
  srun --ntasks-per-node=1 ncclog collect -o /shared/facts.%h.txt
  ncclog collect --script > collect.sh   for hosts without ncclog:
  ssh node7 sh < collect.sh > node7.txt
  kubectl exec -i POD -- sh < collect.sh > POD.txt
  ncclog analyze rank*.log node*.txt     logs and facts together";

/// What stands behind them.
pub const NOTES: &str = "\
It only reads, opens no connection, installs nothing and needs no root. `ncclog collect --list` prints
the commands. Read the file before you give it away: it holds addresses, serial numbers and kernel messages.";

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Write to FILE instead of standard output; %h is this host's name
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["script", "list"])]
    pub output: Option<PathBuf>,
    /// Print a POSIX shell script that does the same
    #[arg(long)]
    pub script: bool,
    /// Print the commands and what each is read for, and run nothing
    #[arg(long, conflicts_with = "script")]
    pub list: bool,
    /// Longest time of one command
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = limit)]
    pub timeout: Duration,
    /// Name of this host in the logs, where it differs (a container's)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["script", "list"], value_parser = host_name)]
    pub host: Option<String>,
}

/// Runs what was asked for.
pub fn run(args: &CollectArgs) -> Result<u8> {
    if args.list {
        to_stdout(false, list)?;
        return Ok(exit::OK);
    }
    if args.script {
        to_stdout(false, |out| out.write_all(script(args.timeout).as_bytes()))?;
        return Ok(exit::OK);
    }
    let host = args.host.clone().unwrap_or_else(own_name);
    let target = args.output.as_deref().filter(|p| p.as_os_str() != "-").map(|p| fill(p, &host)).transpose()?;
    if let Some(path) = &target {
        output::check(path)?;
        check_replaceable(path)?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicBool::new(false));
    let handler = (Arc::clone(&stop), Arc::clone(&asked));
    let on_signal = move || {
        handler.0.store(true, Ordering::Relaxed);
        handler.1.store(true, Ordering::Relaxed);
    };
    ctrlc::set_handler(on_signal).map_err(|e| anyhow!("signals cannot be caught ({e})"))?;
    let mut told = Told::default();
    let mut write = |out: &mut dyn Write| {
        writeln!(out, "{}", header(&host, SystemTime::now(), rustix::process::geteuid().is_root()))?;
        collect(args.timeout, &stop, &mut |section| {
            told.add(&section);
            section.write(out, args.timeout)
        })
    };
    match &target {
        Some(path) => output::to_file(path, &mut write)?,
        None => to_stdout(false, &mut write)?,
    }
    told.summary(target.as_deref(), args.timeout);
    // A reader that went away stops the commands as well, and is no failure.
    if asked.load(Ordering::Relaxed) {
        complain("was stopped; what had been read by then is written");
        return Ok(exit::TROUBLE);
    }
    Ok(exit::OK)
}

/// What the user is told at the end, on standard error.
#[derive(Default)]
struct Told {
    good: usize,
    missing: Vec<String>,
    late: Vec<String>,
    root: Vec<&'static str>,
}

impl Told {
    fn add(&mut self, section: &Section) {
        let shown = section.step.to_string();
        match section.end {
            End::Exit(0) | End::Cut => self.good += 1,
            End::Missing => {
                let program = section.step.argv.first().cloned().unwrap_or(shown);
                if !self.missing.contains(&program) {
                    self.missing.push(program);
                }
            }
            End::TimedOut => self.late.push(shown),
            End::Exit(_) | End::Interrupted => {}
        }
        let needs = section.step.probe.root;
        let denied = section.output.windows(13).any(|w| w.eq_ignore_ascii_case(b"access denied")) || section.output.windows(13).any(|w| w == b"not permitted");
        if denied && !needs.is_empty() && !self.root.contains(&needs) {
            self.root.push(needs);
        }
    }

    fn summary(&self, target: Option<&Path>, limit: Duration) {
        complain(&format!("{} commands gave facts", self.good));
        if !self.missing.is_empty() {
            complain(&format!("not on this host, and not needed if its hardware is not here: {}", self.missing.join(", ")));
        }
        if !self.late.is_empty() {
            complain(&format!("no answer within {} s, which may be the finding: {}", limit.as_secs(), self.late.join("; ")));
        }
        if !self.root.is_empty() {
            complain(&format!("only root is shown: {}", self.root.join("; ")));
        }
        let file = target.map_or_else(|| "node*.txt".to_owned(), |p| p.display().to_string());
        let to_terminal = target.is_none() && io::stdout().is_terminal();
        if to_terminal {
            complain("to keep it: ncclog collect -o node.txt");
        } else {
            complain(&format!("next, with the files of all nodes: ncclog analyze rank*.log {file}"));
        }
    }
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    for probe in PROBES {
        let command = match probe.call {
            Call::Program(argv) => shown(argv),
            Call::Builtin(text) => text.to_owned(),
            Call::Interfaces(argv) => format!("{} IF   (each interface with hardware behind it)", argv.join(" ")),
        };
        writeln!(out, "{command}")?;
        let only = if probe.otherwise { "where the one before failed: " } else { "" };
        let root = if probe.root.is_empty() { String::new() } else { format!("; without root it may not show {}", probe.root) };
        for line in wrap(&format!("{only}{}{root} ({})", probe.why, probe.causes.join(", ")), DEFAULT_WIDTH - 4) {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(())
}

/// Puts the host's name into a file name, as NCCL_DEBUG_FILE does.
fn fill(path: &Path, host: &str) -> Result<PathBuf> {
    let text = path.to_str().ok_or_else(|| anyhow!("{}: the name is no valid UTF-8", path.display()))?;
    let short = host.split('.').next().unwrap_or(host);
    Ok(PathBuf::from(text.replace("%h", short)))
}

/// Facts may be read anew; a log must not be lost by a slip.
fn check_replaceable(path: &Path) -> Result<()> {
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    if !file.metadata().is_ok_and(|m| m.is_file() && m.len() > 0) {
        return Ok(());
    }
    let mut head = [0; MAGIC.len()];
    let read = file.read_exact(&mut head).is_ok();
    if !read || head != MAGIC.as_bytes() {
        bail!("{}: exists and holds no facts of an earlier `ncclog collect`; choose another --output", path.display());
    }
    Ok(())
}

/// The whole name; NCCL cuts it at the first dot, which `analyze` knows.
fn own_name() -> String {
    let name = rustix::system::uname();
    host_name(&name.nodename().to_string_lossy()).unwrap_or_else(|_| "unknown".to_owned())
}

fn host_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/') {
        return Err("a host's name is one word, such as node7".to_owned());
    }
    Ok(text.to_owned())
}

fn limit(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.subsec_nanos() != 0 || time < Duration::from_secs(1) || time > Duration::from_secs(600) {
        return Err("give whole seconds from 1s to 10m".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_limits() {
        assert_eq!(fill(Path::new("/x/facts.%h.txt"), "node7.example.org").unwrap(), Path::new("/x/facts.node7.txt"));
        assert!(host_name("a b").is_err() && host_name("").is_err() && host_name("../x").is_err());
        assert_eq!(limit("2m"), Ok(Duration::from_secs(120)));
        assert!(["0", "500ms", "1.5s", "11m", "x"].iter().all(|t| limit(t).is_err()));
    }
}
