//! The words that all formats for people share.

use crate::event::Stage;
use crate::lang::REMARK;
use crate::rules::{Analysis, Verdict};

/// A stage in words. Up to 2.22 the ranks had met before `Init START`; since 2.23.4 they meet after it, so that a
/// rank whose last stage is `Init START` waits there for the others.
pub fn stage(stage: Stage, versions: &[String]) -> &'static str {
    match stage {
        Stage::Loaded => "library loaded",
        Stage::BootstrapInterface => "bootstrap interface chosen",
        Stage::NetPlugin => "net plugin chosen",
        Stage::NetDevices => "net devices listed",
        Stage::Network => "network chosen",
        Stage::InitStart if meets_after_start(versions) => "bootstrap (waiting for ranks)",
        Stage::InitStart => "Init START",
        Stage::Bootstrapped => "ranks met",
        Stage::Topology => "topology known",
        Stage::Graph => "graphs searched",
        Stage::Layout => "channels agreed",
        Stage::Proxy => "proxies up",
        Stage::Connecting => "connecting channels",
        Stage::Connected => "channels connected",
        Stage::Tuned => "tuned",
        Stage::InitComplete => "Init COMPLETE",
        Stage::Collective => "running collectives",
    }
}

fn meets_after_start(versions: &[String]) -> bool {
    let numbers = |v: &str| -> Option<(u32, u32)> {
        let mut parts = v.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    !versions.is_empty() && versions.iter().all(|v| numbers(v).is_some_and(|n| n >= (2, 23)))
}

/// A verdict as its heading.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Healthy => "HEALTHY",
        Verdict::Degraded => "DEGRADED",
        Verdict::Failed => "FAILED",
        Verdict::Stalled => "STALLED",
        Verdict::Inconclusive => "INCONCLUSIVE",
    }
}

/// The one line that heads a report, and how many notes it uses up. Without a finding the notes speak: what is good,
/// or what was missing.
pub fn headline(analysis: &Analysis) -> (&str, usize) {
    if analysis.verdict != Verdict::Healthy
        && let Some(root) = analysis.findings.iter().find(|f| f.is_root())
    {
        return (&root.title, 0);
    }
    let recognised = analysis.job.streams.iter().any(|s| s.events > 0);
    match analysis.notes.first() {
        Some(first) if analysis.verdict == Verdict::Healthy || !recognised => (first, 1),
        _ => (default_title(analysis.verdict), 0),
    }
}

/// What the heading says when no finding does.
fn default_title(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Healthy => "No problem found",
        Verdict::Degraded => "It works, but not as it should",
        Verdict::Failed => "The job failed, and no known cause fits these logs",
        Verdict::Stalled => "The job waits, and no known cause fits these logs",
        Verdict::Inconclusive => "These logs do not hold enough evidence",
    }
}

/// Whether a check is a sentence; anything else is a command.
pub fn is_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', ')', '。', '！', '）']) && !text.contains(REMARK)
}

/// `1 rank`, `2 ranks`.
pub fn plural(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_start_waits_only_where_bootstrap_follows() {
        let waits = |v: &[&str]| stage(Stage::InitStart, &v.iter().map(ToString::to_string).collect::<Vec<_>>()) != "Init START";
        assert!(waits(&["2.23.4+cuda12.6", "2.27.3"]));
        assert!(!waits(&["2.22.3+cuda12.6"]));
        assert!(!waits(&["2.18.1", "2.27.3"]));
        assert!(!waits(&[]));
        assert!(!waits(&["garbage"]));
    }
}
