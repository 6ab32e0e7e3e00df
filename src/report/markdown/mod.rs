//! Markdown for a bug report: never longer than GitHub takes, cut from the least important end, and what was cut is
//! said.

mod blocks;
pub(crate) mod escape;
mod fit;
mod template;

pub use template::Template;

use super::Options;
use crate::rules::Analysis;
use std::io::{self, Write};

/// GitHub refuses longer bodies.
pub const MAX_CHARACTERS: usize = 65_536;

/// Writes the report, or the fields of a project's bug report.
pub fn write(analysis: &Analysis, out: &mut dyn Write, options: &Options) -> io::Result<()> {
    let blocks = match options.template {
        None => blocks::report(analysis, options.lang),
        Some(template) => template::fill(template, analysis),
    };
    out.write_all(fit::fit(blocks, MAX_CHARACTERS).as_bytes())
}
