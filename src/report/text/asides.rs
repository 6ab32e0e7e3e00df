//! What stands beside the findings: warnings that nothing explains, what was silenced, answers to `--why-not`.

use super::page::{Page, paint};
use super::tree::proof;
use crate::report::{clean, ranges};
use crate::rules::{Silenced, Standing, UnknownWarning, WhyNot};
use std::io;

/// Most groups of unknown warnings.
const MAX_UNKNOWN: usize = 6;

/// Most silenced things.
const MAX_SILENCED: usize = 12;

/// Warnings that no row describes.
pub fn unknown(page: &mut Page, warnings: &[UnknownWarning]) -> io::Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    page.heading(&format!("Unexplained warnings: {}", warnings.len()))?;
    let dim = page.palette.dim;
    page.para(0, "", dim, &page.word("No table describes them; the rarest first. None is an alarm by itself."))?;
    for warning in warnings.iter().take(MAX_UNKNOWN) {
        page.para(0, "- ", dim, &origin(warning))?;
        proof(page, 2, &warning.evidence)?;
    }
    more(page, warnings.len(), MAX_UNKNOWN)
}

fn more(page: &mut Page, all: usize, shown: usize) -> io::Result<()> {
    match all.checked_sub(shown) {
        Some(rest @ 1..) => page.raw(0, &page.word(&format!("… {rest} more in --format json"))),
        _ => Ok(()),
    }
}

/// `3 times on rank 5 (node2)`
fn origin(warning: &UnknownWarning) -> String {
    let times = if warning.count == 1 { "once".to_owned() } else { format!("{} times", warning.count) };
    let who = match warning.ranks.as_slice() {
        [] if warning.processes == 1 => "1 process".to_owned(),
        [] => format!("{} processes", warning.processes),
        [one] => format!("rank {one}"),
        many => format!("ranks {}", ranges(many, Some(28))),
    };
    let place = match warning.hosts.as_slice() {
        [one] => format!(" ({one})"),
        _ => String::new(),
    };
    clean(&format!("{times} on {who}{place}")).into_owned()
}

/// What the user's configuration silenced, with the reasons.
pub fn silenced(page: &mut Page, list: &[Silenced]) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    page.heading("Silenced by your configuration")?;
    let plain = page.palette.plain;
    for one in list.iter().take(MAX_SILENCED) {
        let what = match (&one.finding, &one.warning) {
            (Some(finding), _) => format!("{}: {}", finding.id, finding.title),
            (None, Some(warning)) => format!("{} `{}`", if warning.count == 1 { "1 warning".to_owned() } else { format!("{} warnings", warning.count) }, warning.template),
            (None, None) => continue,
        };
        page.para(0, "- ", plain, &what)?;
        page.para(2, &page.label("reason: "), plain, &one.reason)?;
    }
    more(page, list.len(), MAX_SILENCED)
}

/// Answers to `--why-not`.
pub fn why_not(page: &mut Page, answers: &[WhyNot]) -> io::Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    page.heading("Why not")?;
    let palette = page.palette;
    for answer in answers {
        let standing = match answer.standing {
            Standing::Found => "it was found",
            Standing::Consequence => "it was found, as a consequence",
            Standing::Silenced => "silenced",
            Standing::Shadowed => "it stands only where nothing else does",
            Standing::RuledOut => "ruled out",
            Standing::NoEvidence => "no line speaks for it",
        };
        let label = format!("{}: ", answer.cause);
        page.labelled(0, &label, &paint(palette.bold, &label), 2, palette.plain, &page.word(standing))?;
        for reason in &answer.reasons {
            page.para(2, "- ", palette.plain, &reason.text)?;
            if let Some(line) = &reason.evidence {
                proof(page, 4, line)?;
            }
        }
    }
    Ok(())
}
