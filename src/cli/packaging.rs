//! `ncclog completions` and `ncclog man`: what a package installs beside the binary. Both are made from the command line
//! itself, so that they never lag behind it.

use super::args::Cli;
use super::{exit, output};
use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What stands in front of the options of `completions`.
pub const COMPLETIONS: &str = "\
Examples:
  ncclog completions bash > ~/.local/share/bash-completion/completions/ncclog
  ncclog completions zsh > ~/.zfunc/_ncclog        with `fpath+=~/.zfunc` before compinit
  ncclog completions fish > ~/.config/fish/completions/ncclog.fish";

/// What stands in front of the options of `man`.
pub const MAN: &str = "\
Examples:
  ncclog man ~/.local/share/man/man1     then `man ncclog`, `man ncclog-follow`";

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_enum, value_name = "SHELL", hide_possible_values = true)]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// An existing or new directory
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<u8> {
    // The generator panics where it cannot write; a vector takes all.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ncclog", &mut script);
    output::to_stdout(false, |out| out.write_all(&script)).map(|()| exit::OK)
}

/// Writes one page a command.
pub fn man(args: &ManArgs) -> Result<u8> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made; choose a directory that you may write to", folder.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, folder).with_context(|| format!("{}: the pages cannot be written", folder.display()))?;
    Ok(exit::OK)
}

fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|s| !s.is_hide_set()) {
        pages(sub, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    // The generator leaves an empty date out, so that the version would stand in its place. A date would differ from build
    // to build.
    writeln!(page, ".TH \"{}\" \"1\" \"\" \"ncclog {}\" \"ncclog\"", name.to_uppercase(), env!("CARGO_PKG_VERSION"))?;
    write_page(command, &mut page)?;
    fs::write(folder.join(format!("{name}.1")), page)
}

/// The page of a command, without its title. The examples stand before the options in the help and behind them here, as manuals have it.
fn write_page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.get_subcommands().any(|s| !s.is_hide_set()) {
        man.render_subcommands_section(out)?;
    }
    for (text, other) in [(command.get_before_help(), "NOTES"), (command.get_after_help(), "NOTES")] {
        if let Some(text) = text {
            sections(&text.to_string(), other).to_writer(out)?;
        }
    }
    Ok(())
}

/// A help text as sections: a line that ends with a colon and stands at the margin heads one, `other` heads the rest.
fn sections(text: &str, other: &str) -> Roff {
    let mut roff = Roff::default();
    let mut within = false;
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|h| !h.starts_with(' '));
        match heading {
            Some(heading) => head(&mut roff, if heading == "Exit codes" { "EXIT STATUS" } else { heading }, &mut within),
            None if line.is_empty() => {}
            None if line.starts_with(' ') && within => {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            None => {
                head(&mut roff, other, &mut within);
                roff.text([roman(line.trim())]);
            }
        }
    }
    if within {
        roff.control("fi", []);
    }
    roff
}

/// Begins a section of lines that stay as they are.
fn head(roff: &mut Roff, title: &str, within: &mut bool) {
    if *within {
        roff.control("fi", []);
    }
    *within = true;
    roff.control("SH", [title.to_uppercase().as_str()]);
    roff.control("nf", []);
}

#[cfg(test)]
mod tests {
    use super::sections;

    #[test]
    fn help_becomes_sections() {
        let roff = sections("Examples:\n  ncclog .x\n\nExit codes:\n  0  fine\n\nA good log: set it.", "NOTES").to_roff();
        assert_eq!(roff, ".SH EXAMPLES\n.nf\nncclog .x\n.fi\n.SH \"EXIT STATUS\"\n.nf\n0  fine\n.fi\n.SH NOTES\n.nf\nA good log: set it.\n.fi\n");
        assert_eq!(sections("", "NOTES").to_roff(), "");
    }
}
