//! Where results go: standard output that may be closed early, or a file that appears whole or not at all.

use crate::report::{self, DEFAULT_WIDTH, MIN_WIDTH, PROSE_WIDTH};
use anstream::AutoStream;
use anyhow::{Context, Result, bail};
use clap::ColorChoice;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Whether to colour what goes to standard output.
pub fn use_color(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
    }
}

/// Columns of the terminal behind standard output, if it is one.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(stdout).map(|(width, _)| usize::from(width.0))
}

/// How to write a report. Only what goes to a terminal asks for its width.
pub fn report_options(width: Option<u16>, to_terminal: bool, brief: bool, color: bool) -> report::Options<'static> {
    let width = match width {
        Some(width) => usize::from(width),
        None if to_terminal => terminal_width().map_or(DEFAULT_WIDTH, |w| w.clamp(MIN_WIDTH, PROSE_WIDTH)),
        None => DEFAULT_WIDTH,
    };
    report::Options { width, color, brief, ..report::Options::default() }
}

/// Writes to standard output. A reader that went away has seen enough: that is no error.
pub fn to_stdout(color: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let stdout = io::stdout().lock();
    let target: Box<dyn Write> = if color { Box::new(AutoStream::always(stdout)) } else { Box::new(stdout) };
    let mut out = BufWriter::with_capacity(64 * 1024, target);
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // Dropping the buffer would try once more.
            let _ = out.into_parts();
            Ok(())
        }
        result => result.context("standard output cannot be written; send it to a file on a disk with room"),
    }
}

/// [`check`] for what is no text, which `-` sends to a program and not to a terminal.
pub fn check_packed(path: &Path, what: &str, inputs: &[String]) -> Result<()> {
    if path.as_os_str() == "-" {
        if io::stdout().is_terminal() {
            bail!("{what} is no text for a terminal; give a file with --output");
        }
        return Ok(());
    }
    check(path)?;
    check_not_input(path, inputs.iter().map(String::as_str))
}

/// Refuses an output path that cannot work, before any work is done.
pub fn check(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{}: is a directory; give a file name with --output", path.display());
    }
    let folder = folder(path);
    if !folder.is_dir() {
        bail!("{}: there is no directory {}; create it or choose another --output", path.display(), folder.display());
    }
    Ok(())
}

/// Refuses to replace one of the inputs.
pub fn check_not_input<'a>(path: &Path, inputs: impl Iterator<Item = &'a str>) -> Result<()> {
    let Ok(target) = path.canonicalize() else { return Ok(()) };
    if !target.is_file() {
        return Ok(());
    }
    for input in inputs {
        if Path::new(input).canonicalize().is_ok_and(|p| p == target) {
            bail!("{}: is one of the inputs and would be overwritten; choose another --output", path.display());
        }
    }
    Ok(())
}

/// Writes beside `path` and renames, so that nobody ever reads half a report. What is no regular file (a pipe,
/// `/dev/stderr`) is written directly; replacing it would break it.
pub fn to_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let hint = || format!("{}: cannot be written; check the permissions and the room there, or choose another --output", path.display());
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        let file = File::options().write(true).open(&target).with_context(hint)?;
        return fill(file, write).map(drop).with_context(hint);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ncclog-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let temporary = builder.tempfile_in(folder(&target)).with_context(hint)?;
    let temporary = fill(temporary, write).with_context(hint)?;
    if let Some(metadata) = existing {
        fs::set_permissions(temporary.path(), metadata.permissions()).with_context(hint)?;
    }
    temporary.persist(&target).map_err(|e| e.error).with_context(hint)?;
    Ok(())
}

fn fill<W: Write>(target: W, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
    let mut out = BufWriter::new(target);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
