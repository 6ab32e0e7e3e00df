//! `ncclog.toml`: a user's own rules, and what the user knows and does not want to hear of.
//!
//! Reading is strict: an unknown key, a severity that does not exist or a pattern that cannot work is an error that
//! names its line and column. Half of a configuration is worse than none.

mod build;

use crate::rules::{Confidence, Severity, User};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use toml::Spanned;

/// Name of the file.
pub const FILE_NAME: &str = "ncclog.toml";

/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: cannot be read ({source}); name another file with --config, or use --no-config")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What it says cannot work.
    #[error("{path}:{line}:{column}: {what}")]
    Wrong {
        /// The file.
        path: String,
        /// Line, 1-based.
        line: usize,
        /// Column in characters, 1-based.
        column: usize,
        /// What is wrong and what would be right.
        what: String,
    },
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Rule>,
    #[serde(default)]
    silence: Vec<Spanned<Silence>>,
    /// What a good start looks like; `crate::expect` reads it.
    #[serde(default, rename = "expect")]
    _expect: serde::de::IgnoredAny,
}

/// `[[rule]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: Spanned<String>,
    severity: Severity,
    confidence: Option<Confidence>,
    pattern: Option<Spanned<String>>,
    contains: Option<Spanned<String>>,
    title: Spanned<String>,
    #[serde(default)]
    text: String,
    fix: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    verify: Vec<String>,
}

/// `[[silence]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Silence {
    cause: Option<Spanned<String>>,
    pattern: Option<Spanned<String>>,
    contains: Option<Spanned<String>>,
    reason: Spanned<String>,
}

/// The configuration that is in force without `--config`: the one of the current directory, else the user's own.
pub fn discover() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| Some(env::home_dir()?.join(".config")));
    let user = home.map(|dir| dir.join("ncclog").join(FILE_NAME));
    [Some(PathBuf::from(FILE_NAME)), user].into_iter().flatten().find(|p| p.is_file())
}

/// Reads a file.
pub fn read(path: &Path) -> Result<User, Error> {
    let name = path.display().to_string();
    let failed = |source| Error::Read { path: name.clone(), source };
    // A pipe has no length; what counts is how much comes.
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path).map_err(failed)?, MAX_BYTES + 1), &mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(io::Error::other(format!("it is larger than {} KiB", MAX_BYTES / 1024))));
    }
    match std::str::from_utf8(&text) {
        Ok(text) => parse(&name, text),
        Err(error) => {
            let valid = String::from_utf8_lossy(&text[..error.valid_up_to()]).into_owned();
            Err(Source { path: &name, text: &valid }.wrong(valid.len(), "no valid UTF-8"))
        }
    }
}

/// Reads a configuration; `path` stands in its errors.
pub fn parse(path: &str, text: &str) -> Result<User, Error> {
    let source = Source { path, text };
    let file: File = toml::from_str(text).map_err(|error| source.wrong(error.span().map_or(0, |s| s.start), error.message().trim().replace('\n', "; ")))?;
    build::user(&source, file)
}

/// The text of a file, for errors.
struct Source<'a> {
    path: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// An error at a byte offset.
    fn wrong(&self, at: usize, what: impl Into<String>) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Error::Wrong { path: self.path.to_owned(), line, column, what: what.into() }
    }

    /// The offset of byte `at` of a value, or of the value where escapes make that unknowable.
    fn inside(&self, value: &Spanned<String>, at: usize) -> usize {
        let span = value.span();
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let plain = raw.len() == value.get_ref().len() + 2 && raw.get(1..raw.len() - 1) == Some(value.get_ref());
        if plain { span.start + 1 + at } else { span.start }
    }
}

#[cfg(test)]
mod tests;
