//! Report: an analysis for people and for machines. One module a format; nothing here parses or judges.

mod clean;
mod context;
mod github;
mod html;
pub mod json;
mod junit;
pub mod live;
mod markdown;
mod ranges;
mod sarif;
mod text;
mod view;
mod words;

pub use clean::{clean, uncoloured};
pub use context::{Context, FromFiles, Surroundings, surroundings};
pub(crate) use markdown::escape;
pub use markdown::{MAX_CHARACTERS, Template};
pub use ranges::ranges;
pub use text::{tree, wrap};
pub use words::{is_sentence, plural, stage, verdict};

use crate::lang::Lang;
use crate::rules::Analysis;
use std::io::{self, Write};
use text::heads;

/// Name of the JSON contract.
pub const SCHEMA: &str = "ncclog.analysis/1";

/// JSON Schema (2020-12) of the JSON format.
pub const JSON_SCHEMA: &str = include_str!("analysis.schema.json");

/// Narrowest report that still has room for a table.
pub const MIN_WIDTH: usize = 40;

/// Width where nobody knows better.
pub const DEFAULT_WIDTH: usize = 80;

/// Prose gets no wider than this, however wide the terminal is: longer lines are hard to read.
pub const PROSE_WIDTH: usize = 100;

/// Output formats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs, by the schema that `ncclog schema` prints.
    Json,
    /// For a bug report: at most 65,536 characters.
    Markdown,
    /// One self-contained page with pictures.
    Html,
    /// Annotations of GitHub Actions.
    Github,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit XML.
    Junit,
}

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Columns that the text may use.
    pub width: usize,
    /// Use colours.
    pub color: bool,
    /// Text only: nothing but the verdict, its proof and the next command.
    pub brief: bool,
    /// Text only: show how far the evidence leads down the decision tree.
    pub tree: bool,
    /// Markdown only: fill this project's bug form.
    pub template: Option<Template>,
    /// Of headings and labels, for people; findings are as [`translate`](crate::lang::translate) left them.
    pub lang: Lang,
    /// HTML only: read the lines around the evidence from the files. Only for analyses whose files the user named:
    /// in a foreign one a path may point anywhere.
    pub context: Option<&'a dyn Context>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { width: DEFAULT_WIDTH, color: false, brief: false, tree: false, template: None, lang: Lang::En, context: None }
    }
}

/// Writes `analysis` as `format`.
pub fn write(format: Format, analysis: &Analysis, out: &mut dyn Write, options: &Options) -> io::Result<()> {
    match format {
        Format::Text => text::write(analysis, out, options),
        Format::Json => json::write(analysis, out),
        Format::Markdown => markdown::write(analysis, out, options),
        Format::Html => html::write(analysis, out, options),
        Format::Github => github::write(analysis, out),
        Format::Sarif => sarif::write(analysis, out),
        Format::Junit => junit::write(analysis, out),
    }
}
