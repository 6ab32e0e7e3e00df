//! What the reports for post-mortems share: facts, comparisons and the story of a job, ready to be laid out. Knows no
//! format.

mod attempts;
mod compare;
mod facts;
mod praise;
mod ranks;
mod story;
mod transports;

pub use attempts::attempts;
pub use compare::{Compared, common_settings, compare};
pub use facts::facts;
pub use praise::praise;
pub use ranks::{Board, Place, Standing};
pub use story::{Kind as StoryKind, Moment, Story, clock_text, first_warning, story};
pub use transports::{Carrier, carrier, lanes};

use crate::rules::{Confidence, Fix, Severity};

/// A severity in one word.
pub fn severity(of: Severity) -> &'static str {
    match of {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// A confidence in one word.
pub fn confidence(of: Confidence) -> &'static str {
    match of {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    }
}

/// What a fix needs, costs and how it is undone, as far as that is worth a word.
pub fn terms(fix: &Fix) -> impl Iterator<Item = (&'static str, &str)> {
    let says_something = |text: &str| !matches!(text.trim_end_matches('.').to_ascii_lowercase().as_str(), "" | "none" | "none needed" | "nothing");
    [("needs", fix.needs.as_str()), ("cost", fix.cost.as_str()), ("undo", fix.undo.as_str())].into_iter().filter(move |(_, text)| says_something(text))
}

/// `text` in at most `most` characters; `…` shows the cut.
pub fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A record without wrappers and header, as far as they are easy to tell.
pub fn message(text: &str) -> &str {
    let cut = [" NCCL INFO ", " NCCL WARN "].iter().find_map(|mark| text.split_once(mark));
    cut.map_or(text, |(_, message)| message).trim()
}
