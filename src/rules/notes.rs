//! What was missing in the logs and how to get it; what is good about a healthy run.

use super::finding::{Confidence, Finding, Verdict};
use super::query::{Ask, ranges};
use crate::event::Stage;
use std::collections::BTreeMap;

/// How to produce a log that can be diagnosed.
const HOW_TO_LOG: &str = "To get a log that can be diagnosed, run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH NCCL_DEBUG_FILE=nccl.%h.%p.log PYTHONUNBUFFERED=1 on every rank and give all files.";

/// Writes the notes.
pub fn write(ask: Ask<'_>, findings: &[Finding], verdict: Verdict) -> Vec<String> {
    let mut notes = Vec::new();
    let job = ask.job;
    if verdict == Verdict::Healthy {
        notes.push(praise(ask));
    }
    let recognised = job.streams.iter().any(|s| s.events > 0) || !job.facts.is_empty();
    if !recognised {
        notes.push("No line of NCCL, RCCL, a framework or the kernel was recognised.".to_owned());
    }
    if verdict == Verdict::Inconclusive {
        notes.push(HOW_TO_LOG.to_owned());
    }
    if job.runs.len() > 1 {
        notes.push(format!("The logs hold {} attempts; the findings are those of the last one.", job.runs.len()));
    }
    coverage(ask, &mut notes);
    super::facts_notes::write(ask, findings, &mut notes);
    if !findings.iter().any(|f| f.id == "collective-mismatch") {
        notes.extend(super::collective_mismatch::counts(ask));
        notes.extend(super::collective_mismatch::unanswered(ask).into_iter().take(2));
    }
    if !findings.is_empty() || verdict == Verdict::Inconclusive {
        buffered(ask, &mut notes);
        hidden(ask, findings, verdict, &mut notes);
    }
    notes
}

fn praise(ask: Ask<'_>) -> String {
    let job = ask.job;
    let ranks = job.nranks.map_or_else(|| "The job".to_owned(), |n| if n == 1 { "1 rank".to_owned() } else { format!("{n} ranks") });
    let nodes = job.nnodes.map_or(String::new(), |n| if n == 1 { " on 1 node".to_owned() } else { format!(" on {n} nodes") });
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for t in &job.transports {
        let kind = if t.via.starts_with("P2P") {
            "P2P"
        } else if t.via.starts_with("NET") {
            "the network"
        } else if t.via.starts_with("COLL") {
            "CollNet"
        } else {
            "shared memory"
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let over = if kinds.is_empty() { String::new() } else { format!(", connected over {}", kinds.keys().copied().collect::<Vec<_>>().join(", ")) };
    let net = if ask.multi_node() && !job.nets.is_empty() { format!(", network {}", job.nets.join(", ")) } else { String::new() };
    let complete = ask.ranks_at(|s| s >= Stage::InitComplete).len();
    let done = if complete > 0 { format!(", Init COMPLETE on {complete}") } else { String::new() };
    format!("{ranks}{nodes}{net}{over}{done}.")
}

fn coverage(ask: Ask<'_>, notes: &mut Vec<String>) {
    let absent = ask.job.absent_ranks();
    if let Some(n) = ask.job.nranks
        && !absent.is_empty()
        && !ask.job.ranks.is_empty()
    {
        notes.push(format!("{} of {n} ranks have a log; there is none of rank {}.", n as usize - absent.len(), ranges(&absent)));
    }
    let dropped: u64 = ask.job.procs.iter().map(|p| p.log.dropped).sum();
    if dropped > 0 {
        notes.push(format!("{dropped} repeated facts were counted but not kept."));
    }
}

/// NCCL does not flush stdout since 2.13.
fn buffered(ask: Ask<'_>, notes: &mut Vec<String>) {
    let waiting = ask.job.ranks.iter().any(|r| r.stage < Stage::InitComplete);
    let unflushed = ask.version().is_some_and(|v| v >= (2, 13, 0));
    if waiting && unflushed {
        notes.push("NCCL does not flush its standard output: the last lines of a killed or hanging rank may be missing, so the stage shown is a lower bound. PYTHONUNBUFFERED=1 or NCCL_DEBUG_FILE=nccl.%h.%p.log avoids that.".to_owned());
    }
}

/// Lines of subsystems that were off, where they could have decided something.
fn hidden(ask: Ask<'_>, findings: &[Finding], verdict: Verdict, notes: &mut Vec<String>) {
    const OF_THE_NETWORK: [&str; 7] = ["tcp-fallback", "roce-qp-gid-mtu", "ib-completion-error", "ib-device-missing", "rail-topology", "gdr-disabled", "stall"];
    let open = verdict == Verdict::Inconclusive || findings.iter().any(|f| f.is_root() && f.confidence != Confidence::Certain && OF_THE_NETWORK.contains(&f.id));
    let nccl = ask.job.procs.iter().any(|p| p.nccl);
    let net_lines = ask.any_of(&["ib.qp_info", "gdr.enabled", "gdr.disabled"]);
    if open && nccl && ask.multi_node() && net_lines.is_empty() {
        notes.push("Queue pair, GID and GPU Direct lines are not in these logs; NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET shows them.".to_owned());
    }
}
