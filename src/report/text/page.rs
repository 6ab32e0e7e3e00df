//! Where the text goes: width, colours and the few layouts that all sections share.

use super::super::clean;
use super::wrap::{columns, wrap_after};
use crate::lang::{self, Lang};
use crate::rules::{Severity, Verdict};
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{self, Write};

/// Styles by what they mean.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// No style.
    pub plain: Style,
    /// Headings and names.
    pub bold: Style,
    /// What one may skip.
    pub dim: Style,
    /// Something is broken.
    pub error: Style,
    /// Something is not as it should be.
    pub warning: Style,
    /// Worth knowing; also what one may copy.
    pub info: Style,
    /// All is well.
    pub good: Style,
}

impl Palette {
    /// No colours.
    pub fn plain() -> Self {
        let plain = Style::new();
        Self { plain, bold: plain, dim: plain, error: plain, warning: plain, info: plain, good: plain }
    }

    /// The colours of a terminal's own theme.
    pub fn colored() -> Self {
        let of = |color: AnsiColor| color.on_default();
        Self {
            plain: Style::new(),
            bold: Style::new().bold(),
            dim: Style::new().dimmed(),
            error: of(AnsiColor::Red).bold(),
            warning: of(AnsiColor::Yellow).bold(),
            info: of(AnsiColor::Cyan),
            good: of(AnsiColor::Green).bold(),
        }
    }

    /// The style of a severity.
    pub fn severity(&self, severity: Severity) -> Style {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
            Severity::Info => self.info,
        }
    }

    /// The style of a verdict.
    pub fn verdict(&self, verdict: Verdict) -> Style {
        match verdict {
            Verdict::Healthy => self.good,
            Verdict::Failed | Verdict::Stalled => self.error,
            Verdict::Degraded | Verdict::Inconclusive => self.warning,
        }
    }
}

/// `text` in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A writer with a width.
pub struct Page<'a> {
    /// Where it goes.
    pub out: &'a mut dyn Write,
    /// Columns for quotes and tables.
    pub width: usize,
    /// Columns for prose.
    pub prose: usize,
    /// Styles.
    pub palette: Palette,
    /// Language of headings and labels.
    pub lang: Lang,
}

impl Page<'_> {
    /// A word in the language of the report.
    pub fn word<'t>(&self, english: &'t str) -> Cow<'t, str> {
        lang::word(self.lang, english)
    }

    /// A label within a line.
    pub fn tight(&self, english: &str) -> String {
        let word = self.word(english.trim_end());
        if word.ends_with('：') { word.into_owned() } else { english.to_owned() }
    }

    /// A label in the language of the report, at least as wide as `english` with its blanks.
    pub fn label(&self, english: &str) -> String {
        let word = self.tight(english);
        let pad = columns(english).saturating_sub(columns(&word));
        word + &" ".repeat(pad)
    }

    /// An empty line.
    pub fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// The title of a section, set off by an empty line.
    pub fn heading(&mut self, title: &str) -> io::Result<()> {
        let title = paint(self.palette.bold, &self.word(title));
        writeln!(self.out, "\n{title}")
    }

    /// A line that is ready to print: nothing is cleaned or broken.
    pub fn raw(&mut self, indent: usize, line: &str) -> io::Result<()> {
        writeln!(self.out, "{:indent$}{line}", "")
    }

    /// A command: one line, whatever its length.
    pub fn command(&mut self, indent: usize, command: &str) -> io::Result<()> {
        let line = paint(self.palette.info, &clean(command));
        self.raw(indent, &line)
    }

    /// Prose behind a label, broken with a hanging indent. Line ends in it begin a new line.
    pub fn para(&mut self, indent: usize, label: &str, style: Style, text: &str) -> io::Result<()> {
        self.labelled(indent, label, label, indent + columns(label), style, text)
    }

    /// Prose behind a label that takes the columns of `label` but prints as `painted`; further lines start at `hang`.
    pub fn labelled(&mut self, indent: usize, label: &str, painted: &str, hang: usize, style: Style, text: &str) -> io::Result<()> {
        // Without any text the label still stands.
        let text = if text.trim().is_empty() { " " } else { text };
        let mut first = true;
        let mut taken = (indent + columns(label)).saturating_sub(hang);
        for part in text.lines() {
            for line in wrap_after(taken, &clean(part), self.prose.saturating_sub(hang)) {
                let line = if line.is_empty() { line } else { paint(style, &line) };
                if first {
                    writeln!(self.out, "{:indent$}{painted}{line}", "")?;
                } else {
                    writeln!(self.out, "{:hang$}{line}", "")?;
                }
                first = false;
            }
            taken = 0;
        }
        Ok(())
    }
}
