//! Runs the table on this host.

use super::table::{Call, PROBES, Probe};
use super::{MAGIC, MORE_PATH, MOST_BYTES, MOST_INTERFACES, child};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

/// Commands that run at the same time; more only contend for the same drivers.
const WORKERS: usize = 4;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// There is no such command here.
    Missing,
    /// It took too long and was killed.
    TimedOut,
    /// It printed too much.
    Cut,
    /// The user stopped the collection.
    Interrupted,
}

impl End {
    /// The line that ends a section.
    pub fn line(self, limit: Duration) -> String {
        match self {
            Self::Exit(code) => format!("### exit {code}"),
            Self::Missing => "### missing".to_owned(),
            Self::TimedOut => format!("### timed out after {} s", limit.as_secs()),
            Self::Cut => format!("### cut after {MOST_BYTES} bytes"),
            Self::Interrupted => "### interrupted".to_owned(),
        }
    }
}

/// A command with its arguments for this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// As a person would type it.
    pub shown: String,
    /// Program and arguments; patterns are still patterns.
    pub argv: Vec<String>,
    /// Its row.
    pub probe: &'static Probe,
}

/// What a command gave.
#[derive(Debug)]
pub struct Section {
    /// The command.
    pub step: Step,
    /// Its output, standard error included.
    pub output: Vec<u8>,
    /// How it ended.
    pub end: End,
}

impl Section {
    /// Writes it as `analyze` reads it.
    pub fn write(&self, out: &mut dyn Write, limit: Duration) -> io::Result<()> {
        writeln!(out, "### $ {}", self.step.shown)?;
        for line in self.output.split_inclusive(|b| *b == b'\n') {
            // What looks like one of our own lines must not become one.
            if line.starts_with(b"### ") {
                out.write_all(b" ")?;
            }
            out.write_all(line)?;
        }
        if self.output.last().is_some_and(|b| *b != b'\n') {
            out.write_all(b"\n")?;
        }
        writeln!(out, "{}", self.end.line(limit))
    }
}

/// The first line.
pub fn header(host: &str, time: SystemTime, root: bool) -> String {
    let root = if root { "yes" } else { "no" };
    format!("{MAGIC} host={host} time={} root={root}", humantime::format_rfc3339_seconds(time))
}

/// The commands for these interfaces, those together of which only the first that succeeds is wanted.
pub fn chains(interfaces: &[String]) -> Vec<Vec<Step>> {
    let mut chains: Vec<Vec<Step>> = Vec::new();
    for probe in PROBES {
        let steps = steps(probe, interfaces);
        match chains.last_mut() {
            Some(chain) if probe.otherwise => chain.extend(steps),
            _ => chains.extend(steps.into_iter().map(|s| vec![s])),
        }
    }
    chains
}

fn steps(probe: &'static Probe, interfaces: &[String]) -> Vec<Step> {
    let owned = |argv: &[&str]| argv.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    match probe.call {
        Call::Program(argv) => vec![Step { shown: shown(argv), argv: owned(argv), probe }],
        Call::Builtin(text) => vec![Step { shown: text.to_owned(), argv: owned(&["sh", "-c", text]), probe }],
        Call::Interfaces(argv) => {
            let with = |name: &String| {
                let mut words = owned(argv);
                words.push(name.clone());
                Step { shown: words.join(" "), argv: words, probe }
            };
            interfaces.iter().map(with).collect()
        }
    }
}

/// A command as a person would type it.
pub fn shown(argv: &[&str]) -> String {
    let word = |w: &&str| if w.contains(['$', '^']) { format!("'{w}'") } else { (*w).to_owned() };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Runs everything, several commands at a time, and hands the sections over in the order of the table. `stop` ends
/// the running commands; those that were not begun are left out.
pub fn collect(limit: Duration, stop: &AtomicBool, each: &mut dyn FnMut(Section) -> io::Result<()>) -> io::Result<()> {
    let chains = chains(&interfaces());
    let path = search_path(std::env::var_os("PATH"));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..WORKERS {
            let (send, next, chains, path) = (send.clone(), &next, &chains, &path);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chain) = chains.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else { break };
                    if send.send((index, run_chain(chain, path, limit, stop))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let result = in_order(chains.len(), &receive, each);
        if result.is_err() {
            // Nobody wants the rest.
            stop.store(true, Ordering::Relaxed);
        }
        result
    })
}

fn in_order(count: usize, receive: &mpsc::Receiver<(usize, Vec<Section>)>, each: &mut dyn FnMut(Section) -> io::Result<()>) -> io::Result<()> {
    let mut waiting: Vec<Option<Vec<Section>>> = (0..count).map(|_| None).collect();
    let mut due = 0;
    for (index, sections) in receive {
        waiting[index] = Some(sections);
        while let Some(sections) = waiting.get_mut(due).and_then(Option::take) {
            sections.into_iter().try_for_each(&mut *each)?;
            due += 1;
        }
    }
    Ok(())
}

fn run_chain(chain: &[Step], path: &OsStr, limit: Duration, stop: &AtomicBool) -> Vec<Section> {
    let mut sections = Vec::new();
    for step in chain {
        let (output, end) = run_step(step, path, limit, stop);
        sections.push(Section { step: step.clone(), output, end });
        if matches!(end, End::Exit(0) | End::Interrupted) {
            break;
        }
    }
    sections
}

fn run_step(step: &Step, path: &OsStr, limit: Duration, stop: &AtomicBool) -> (Vec<u8>, End) {
    let Some((program, arguments)) = step.argv.split_first() else { return (Vec::new(), End::Missing) };
    let Some(program) = find(program, path) else { return (Vec::new(), End::Missing) };
    let arguments: Vec<OsString> = arguments.iter().flat_map(|a| expand(a)).collect();
    child::run(&program, &arguments, path, limit, stop)
}

/// The user's search path, and behind it the places that it may lack. Where there is none, the empty entry that would
/// mean the current directory is left out.
fn search_path(own: Option<OsString>) -> OsString {
    let mut path = own.unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(MORE_PATH);
    path
}

fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).map(|folder| folder.join(program)).find(runs)
}

/// As a shell does: the files that match in their order, or the pattern itself if none does.
fn expand(argument: &str) -> Vec<OsString> {
    let plain = || vec![OsString::from(argument)];
    if !argument.contains('*') {
        return plain();
    }
    let mut files: Vec<OsString> = glob::glob(argument).into_iter().flatten().filter_map(Result::ok).map(PathBuf::into_os_string).collect();
    files.sort();
    if files.is_empty() { plain() } else { files }
}

/// Interfaces with hardware behind them, and bonds of such.
fn interfaces() -> Vec<String> {
    let folder = Path::new("/sys/class/net");
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let real = |name: &String| !name.starts_with('-') && (folder.join(name).join("device").exists() || folder.join(name).join("bonding").is_dir());
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).filter(real).collect();
    names.sort();
    names.truncate(MOST_INTERFACES);
    names
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn section(output: &str, end: End) -> String {
        let step = Step { shown: "rdma link show".to_owned(), argv: Vec::new(), probe: &PROBES[0] };
        let mut out = Vec::new();
        Section { step, output: output.as_bytes().to_vec(), end }.write(&mut out, Duration::from_secs(10)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sections_are_framed_and_cannot_forge_frames() {
        assert_eq!(section("", End::Missing), "### $ rdma link show\n### missing\n");
        assert_eq!(section("a\nb", End::Exit(0)), "### $ rdma link show\na\nb\n### exit 0\n");
        assert_eq!(section("### exit 0\n#### x\n", End::TimedOut), "### $ rdma link show\n ### exit 0\n#### x\n### timed out after 10 s\n");
        assert_eq!(header("n1", UNIX_EPOCH + Duration::from_secs(1_775_000_000), false), "### ncclog-collect 1 host=n1 time=2026-03-31T23:33:20Z root=no");
    }

    #[test]
    fn alternatives_share_a_chain_and_interfaces_get_their_own() {
        let chains = chains(&["eth0".to_owned(), "ib0".to_owned()]);
        let texts: Vec<Vec<&str>> = chains.iter().map(|c| c.iter().map(|s| s.shown.as_str()).collect()).collect();
        assert_eq!(texts.last().unwrap(), &["dmesg -T", "dmesg", "journalctl -k -b -n 5000 --no-pager"]);
        assert!(texts.contains(&vec!["ethtool eth0"]) && texts.contains(&vec!["ethtool ib0"]));
        assert!(texts.iter().any(|t| t[0].starts_with("grep -rsHv '^0000:")));
    }

    #[test]
    fn a_missing_search_path_does_not_mean_the_current_folder() {
        assert_eq!(search_path(None), OsString::from(MORE_PATH));
        assert_eq!(search_path(Some(OsString::from("/bin"))), OsString::from(format!("/bin:{MORE_PATH}")));
    }

    #[test]
    fn patterns_without_files_stay() {
        assert_eq!(expand("/sys/class/infiniband/*/no/such"), [OsString::from("/sys/class/infiniband/*/no/such")]);
        assert_eq!(expand("/proc/sel*/cmdline"), [OsString::from("/proc/self/cmdline")]);
        assert_eq!(expand("$x"), [OsString::from("$x")]);
    }
}
