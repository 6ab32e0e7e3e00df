//! `ncclog fix`: the fixes of the findings, for each node with its own names. Nothing is run.

use super::args::ConfigArgs;
use super::output::{self, to_stdout};
use super::{complain, exit, nearest};
use crate::analysis::{Options, analyze};
use crate::cli::progress::Bar;
use crate::rules::{Analysis, Verdict};
use crate::settings::{Block, Flavour, Sheet, Wanted, chosen, env_file, nodes, plan, short, write};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// What stands in front of the options in the help.
pub const EXAMPLES: &str = "\
Examples:
  ncclog fix rank*.log node*.txt         what to set on each node and what to do by hand
  eval \"$(ncclog fix logs/ --for-node $(hostname) --cause tcp-fallback)\"
  ncclog fix logs/ -o env/               env/HOST.env, for docker --env-file or `set -a; . env/HOST.env`
  ncclog fix logs/ --for slurm > node-env.sh";

/// What stands behind them.
pub const NOTES: &str = "\
Nothing is run or changed. Values come from the logs and from the facts of that very node (`ncclog collect`);
where none gives one, the line says how to find it. Exit codes: 0 written or nothing to mend, 2 failed.";

/// First line of a file that may be replaced.
const MARK: &str = "# Written by ncclog fix.";

/// Arguments of `fix`.
#[derive(Debug, Args)]
pub struct FixArgs {
    /// Log files and files of host facts, directories of them, quoted globs; `-` or nothing reads a pipe
    #[arg(value_name = "FILE|DIR|-")]
    pub inputs: Vec<PathBuf>,
    /// Only this node
    #[arg(long, value_name = "HOST")]
    pub for_node: Option<String>,
    /// Only this finding
    #[arg(long, value_name = "CAUSE")]
    pub cause: Option<String>,
    /// Where it is used: shell, docker, slurm, k8s, ray, vllm
    #[arg(long = "for", value_enum, value_name = "PLACE", hide_possible_values = true, default_value_t)]
    pub flavour: Flavour,
    /// Write one HOST.env a node into DIR
    #[arg(long, short, value_name = "DIR", conflicts_with = "flavour")]
    pub output: Option<PathBuf>,
    /// Own rules and silences
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Writes the fixes.
pub fn run(args: &FixArgs) -> Result<u8> {
    if args.inputs.is_empty() && io::stdin().is_terminal() {
        bail!("give log files, and beside them the facts of the nodes: ncclog fix rank*.log node*.txt");
    }
    let cause = args.cause.as_deref().map(super::explain::find).transpose()?.map(|c| c.id);
    let name = |p: &PathBuf| p.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{}: the name is no valid UTF-8", p.display()));
    let inputs = if args.inputs.is_empty() { vec!["-".to_owned()] } else { args.inputs.iter().map(name).collect::<Result<_>>()? };
    if let Some(folder) = &args.output {
        check_folder(folder)?;
    }
    let user = args.config.load()?;
    let bar = Bar::new(false);
    let outcome = analyze(&Options { inputs, user, ..Options::default() }, &bar);
    bar.finish();
    for problem in &outcome.problems {
        complain(&format!("{}: {}", problem.path, problem.text));
    }
    let code = if outcome.problems.is_empty() { exit::OK } else { exit::TROUBLE };
    let analysis = &outcome.analysis;
    let node = args.for_node.as_deref().map(|n| find_node(analysis, n)).transpose()?;
    let wanted = Wanted { cause, node: node.as_deref() };
    if chosen(analysis, &wanted).is_empty() {
        return nothing(analysis, cause).map(|()| code);
    }
    let sheet = plan(analysis, &wanted);
    match &args.output {
        Some(folder) => to_folder(&sheet, folder)?,
        None => to_stdout(false, |out| write(&sheet, args.flavour, out))?,
    }
    Ok(code)
}

/// There is nothing to mend, or not by this name.
fn nothing(analysis: &Analysis, cause: Option<&str>) -> Result<()> {
    let roots = chosen(analysis, &Wanted::default());
    match cause {
        Some(cause) if roots.is_empty() => bail!("{cause} is not a finding here, and nothing else is; `ncclog analyze --why-not {cause}` tells why"),
        Some(cause) => {
            let names: BTreeSet<&str> = roots.iter().map(|f| f.id).collect();
            bail!("{cause} is not a finding here; there is: {}. `ncclog analyze --why-not {cause}` tells why", names.into_iter().collect::<Vec<_>>().join(", "))
        }
        None => {
            complain(match analysis.verdict {
                Verdict::Healthy => "nothing to mend: the logs show a healthy job",
                _ => "nothing to mend: no cause was found; `ncclog analyze` says what is missing in the logs",
            });
            Ok(())
        }
    }
}

/// The node that a name means; its first label is enough.
fn find_node(analysis: &Analysis, name: &str) -> Result<String> {
    let all = nodes(analysis);
    if let Some(exact) = all.iter().find(|n| *n == name) {
        return Ok(exact.clone());
    }
    let mut alike = all.iter().filter(|n| short(n).eq_ignore_ascii_case(short(name)));
    match (alike.next(), alike.next()) {
        (Some(one), None) => return Ok(one.clone()),
        (Some(_), Some(_)) => bail!("{name} may be several nodes; give the whole name: {}", all.join(", ")),
        _ => {}
    }
    match nearest(name, all.iter().map(String::as_str)) {
        Some(meant) => bail!("there is no node `{name}` in these files; did you mean `{meant}`?"),
        None if all.is_empty() => bail!("these files name no node; leave --for-node out"),
        None => bail!("there is no node `{name}` in these files; there is: {}", all.iter().take(20).cloned().collect::<Vec<_>>().join(", ")),
    }
}

fn check_folder(folder: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("{}: is no directory; give one to write HOST.env files into", folder.display());
    }
    Ok(())
}

/// One file a node; what has to be done by hand goes to standard output.
fn to_folder(sheet: &Sheet, folder: &Path) -> Result<()> {
    if sheet.blocks.is_empty() {
        complain("no variable mends this, so no file was written; by hand:");
    } else {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made; choose a directory that you may write to", folder.display()))?;
    }
    let mut files: Vec<(PathBuf, &Block)> = Vec::new();
    for block in &sheet.blocks {
        let path = file_name(folder, block.host.as_deref(), &files);
        check_replaceable(&path)?;
        files.push((path, block));
    }
    for (path, block) in &files {
        output::to_file(path, |out| one_file(sheet, block, out))?;
        complain(&format!("wrote {}", path.display()));
    }
    let rest = Sheet { head: sheet.head.clone(), tail: sheet.tail.clone(), ..Sheet::default() };
    to_stdout(false, |out| write(&rest, Flavour::Shell, out))
}

fn one_file(sheet: &Sheet, block: &Block, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{MARK}")?;
    let notes = ["For this node only: docker run --env-file FILE …, or in a shell: set -a; . ./FILE; set +a".to_owned()];
    let mut head = notes.to_vec();
    head.extend(sheet.head.iter().cloned());
    head.extend(block.host.iter().map(|h| format!("== {h} ==")));
    head.extend(block.notes.iter().cloned());
    write(&Sheet { head, ..Sheet::default() }, Flavour::Shell, out)?;
    env_file(&block.lines, out)?;
    write(&Sheet { tail: block.after.clone(), ..Sheet::default() }, Flavour::Shell, out)
}

/// A name from a log becomes a file name that stays in the folder and is used once.
fn file_name(folder: &Path, host: Option<&str>, taken: &[(PathBuf, &Block)]) -> PathBuf {
    let plain: String = host.unwrap_or("all").chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(100).collect();
    let plain = if plain.starts_with('.') || plain.is_empty() { format!("_{plain}") } else { plain };
    let free = |p: &PathBuf| !taken.iter().any(|(t, _)| t == p);
    let mut path = folder.join(format!("{plain}.env"));
    let mut number = 2;
    while !free(&path) {
        path = folder.join(format!("{plain}-{number}.env"));
        number += 1;
    }
    path
}

/// Only what an earlier run wrote is replaced.
fn check_replaceable(path: &Path) -> Result<()> {
    match fs::read(path) {
        Ok(text) if !text.starts_with(MARK.as_bytes()) => bail!("{}: exists and was not written by `ncclog fix`; choose another --output", path.display()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).with_context(|| format!("{}: cannot be read; choose another --output", path.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs_stay_in_the_folder() {
        let name = |host| file_name(Path::new("/x"), host, &[]).display().to_string();
        assert_eq!(name(Some("node-1.example")), "/x/node-1.example.env");
        assert_eq!(name(Some("../../etc/passwd")), "/x/_.._.._etc_passwd.env");
        assert_eq!(name(None), "/x/all.env");
        let block = Block::default();
        assert_eq!(file_name(Path::new("/x"), Some("a b"), &[(PathBuf::from("/x/a_b.env"), &block)]), Path::new("/x/a_b-2.env"));
    }
}
