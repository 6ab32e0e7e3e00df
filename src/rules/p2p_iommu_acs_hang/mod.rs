//! p2p-iommu-acs-hang: GPUs of one machine hang because the IOMMU or ACS blocks their direct P2P transfers.

mod advice;
mod facts;
#[cfg(test)]
mod tests;

use super::finding::{Confidence, Evidence, Finding, Severity};
use super::query::{Ask, Hit, ranges, ranks_text};
use super::waiting::{self, Local};
use super::{Cause, Rule};
use crate::event::Library;
use crate::job::Comm;
use facts::Way;

const ID: &str = "p2p-iommu-acs-hang";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: ID,
        aliases: &[],
        summary: "GPUs of one machine hang because the IOMMU or ACS blocks their direct P2P transfers.",
        explanation: include_str!("../p2p_iommu_acs_hang.md"),
    },
    check,
    explains: &["collective-timeout", "peer-crash", "stall"],
    only_alone: false,
};

pub(super) use facts::wrong_results;

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let found = facts::blocked_by_iommu(ask).or_else(|| wrong_results(ask)).or_else(|| facts::works_without(ask));
    if found.is_some() {
        return found.into_iter().collect();
    }
    // With a free way between the cards the wait has another reason.
    let way = facts::way(ask);
    if matches!(way, Way::Clear) {
        return Vec::new();
    }
    waits_over_p2p(ask, way).or_else(|| first_collective(ask)).or_else(|| tail(ask)).into_iter().collect()
}

/// A finding of this rule with path, fixes and checks.
fn claim(ask: Ask<'_>, severity: Severity, confidence: Confidence, title: String) -> Finding {
    let mut finding = Finding::new(ID, severity, confidence, title);
    finding.path = vec!["q-cluster-or-single-host-p2p", "q-p2p-nvidia-or-amd-r9700", "sol-pcie-iommu-pt-and-acs-p2p"];
    finding.hosts = ask.hosts().into_iter().map(str::to_owned).collect();
    advice::give(ask, &mut finding);
    finding
}

/// The world communicator, if its GPUs share one host, use P2P without a sign of NVLink, and nothing excludes this cause.
fn candidate(ask: Ask<'_>) -> Option<(&Comm, Local)> {
    let comm = ask.job.world()?;
    let excluded = ask.job.library == Some(Library::Rccl)
        || ask.multi_node()
        || comm.nnodes.is_some_and(|n| n > 1)
        || waiting::progressed(ask)
        || waiting::failed(ask)
        || waiting::p2p_switched_off(ask).is_some()
        || ask.has("p2p.disabled")
        || ask.has("p2p.not_enabled")
        || waiting::watchdog(ask).late;
    if excluded || waiting::nvlink(ask) || !waiting::is_whole(comm) {
        return None;
    }
    let local = waiting::local(ask, comm);
    (!local.p2p.is_empty() && local.shm.is_empty() && local.net.is_empty()).then_some((comm, local))
}

/// Every rank is there, over P2P on PCIe, and nothing comes any more.
fn waits_over_p2p(ask: Ask<'_>, way: Way) -> Option<Finding> {
    let (comm, local) = candidate(ask)?;
    let complete = ask.views(comm).all(|(_, l)| l.complete.is_some());
    let connecting = !complete && waiting::stopped_connecting(ask, comm);
    if !complete && !connecting {
        return None;
    }
    let ranks: Vec<u32> = waiting::present(comm).into_iter().collect();
    let via = local.p2p.first()?.via.clone();
    let place = if complete { "Init COMPLETE" } else { "connecting their channels" };
    let dog = waiting::watchdog(ask);
    let dead = ranks.iter().all(|r| dog.ranks.contains(r));
    let tail = waiting::framework_tail(ask);
    let beat = tail.as_ref().and_then(|t| t.beat);
    let silent = waiting::silence(ask);
    let framework = complete && !(ask.under("vllm.").is_empty() && ask.under("sglang.").is_empty());
    let mut proof: Vec<Evidence> = dog.first.iter().take(2).map(Hit::evidence).collect();
    proof.extend(beat.map(|b| b.evidence()));
    proof.extend(ask.views(comm).filter_map(|(m, l)| l.complete.as_ref().map(|s| super::query::evidence(ask.job, m.rank, s))).take(2));
    proof.extend(local.p2p.into_iter().map(|l| l.line).take(2));
    let named = consumer(ask).map_or(String::new(), |n| format!(" ({n})"));
    let over = format!("{} of one host{named} stand at {place}, all local pairs over {via}", ranks_text(&ranks));
    let (severity, confidence, sign) = if dead || beat.is_some() || silent.is_some() {
        let sign = if dead {
            "torch's watchdog says on every rank that not even the first collective ended".to_owned()
        } else if let Some(seconds) = silent {
            format!("no log has grown for {seconds} s")
        } else {
            "the framework says that its workers do not answer, and the line that follows NCCL's start is missing".to_owned()
        };
        (Severity::Error, Confidence::Likely, sign)
    } else if framework {
        (Severity::Warning, Confidence::Possible, "the framework's next line, which comes after NCCL's warm-up all-reduce, is missing".to_owned())
    } else if waiting::table_without_row(ask).is_some() {
        (Severity::Warning, Confidence::Possible, "nccl-tests printed the head of its table and no row".to_owned())
    } else if connecting {
        (Severity::Warning, Confidence::Possible, "no rank printed `Connected all rings`, and all stop at the same place".to_owned())
    } else {
        (Severity::Info, Confidence::Possible, "the logs end there, which a sound run may do too".to_owned())
    };
    let cards = super::facts::between(ask).map_or(String::new(), |b| format!("By `lspci`, the cards {}. ", super::facts::joined(&b)));
    let host = if let Way::Blocked(block) = way { Some(block) } else { None };
    let confidence = if host.is_some() && confidence == Confidence::Likely { Confidence::Certain } else { confidence };
    let title = if severity == Severity::Info {
        format!("If the job stands still here: P2P between ranks {} over PCIe ({via}) is the first suspect", ranges(&ranks))
    } else {
        format!("P2P between ranks {} over PCIe ({via}) does not deliver: all stand at {place}", ranges(&ranks))
    };
    let mut finding = claim(ask, severity, confidence, title);
    finding.why = format!("{over}; {sign}. No line shows NVLink or a finished collective. {cards}");
    if let Some(block) = host {
        finding.why.push_str(&block.text);
        advice::by_facts(&block, &mut finding);
        let at = proof.len().min(2);
        proof.splice(at..at, block.lines.into_iter().take(3));
    } else if confidence == Confidence::Certain {
        finding.why.push_str("The IOMMU or ACS on the way between the cards is the reason.");
    } else {
        finding.why.push_str("An IOMMU that translates, or ACS on a PCIe bridge, is the usual reason; a rank that never called the collective looks the same. NCCL_P2P_DISABLE=1 decides: if the job then runs, it is P2P.");
    }
    finding.ranks = ranks;
    finding.evidence = proof.into_iter().take(6).collect();
    Some(finding)
}

/// A named card that has no NVLink.
fn consumer(ask: Ask<'_>) -> Option<&str> {
    const CARDS: [&str; 9] = ["RTX", "GeForce", "GTX", "L40", "A10", "A40", "PCIe", "L4", "T4"];
    waiting::gpu_names(ask).into_iter().find(|n| CARDS.iter().any(|c| n.contains(c)))
}

/// No NCCL line, but every rank says that the first collective never ended.
fn first_collective(ask: Ask<'_>) -> Option<Finding> {
    let dog = waiting::watchdog(ask);
    let several = ask.job.hosts.len() > 1 || ask.procs().any(|(_, p)| p.log.wrap_hosts.len() > 1) || waiting::said_to_span(ask);
    let silent = ask.job.world().is_none() && !ask.procs().any(|(_, p)| p.nccl);
    if dog.late || dog.ranks.len() < 2 || dog.ranks.len() > 8 || several || !silent || ask.job.library == Some(Library::Rccl) || waiting::progressed(ask) {
        return None;
    }
    let ranks: Vec<u32> = dog.ranks.iter().copied().collect();
    // Ranks from 0 on without a gap: the others of a larger job would be late, not stuck in the same place.
    if ranks.iter().enumerate().any(|(i, r)| i != *r as usize) || waiting::p2p_switched_off(ask).is_some() {
        return None;
    }
    let title = format!("The first collective of {} never ended; P2P between the GPUs may not deliver", ranks_text(&ranks));
    let mut finding = claim(ask, Severity::Warning, Confidence::Possible, title);
    finding.why = format!(
        "{} all wait in the very first collective, so none is late and the data path between the GPUs is suspect. There is no line of NCCL, so neither the transport nor the cards are known; a crash in another process or a network between nodes would look the same. Run once with NCCL_DEBUG=INFO: `via P2P` lines without NVLink make it likely, `via NET` lines exclude it.",
        ranks_text(&ranks)
    );
    finding.ranks = ranks;
    finding.evidence = dog.first.iter().map(Hit::evidence).take(4).collect();
    Some(finding)
}

/// Only framework lines, and the last one is printed right before NCCL starts.
fn tail(ask: Ask<'_>) -> Option<Finding> {
    let tail = waiting::framework_tail(ask)?;
    let nccl = ask.procs().any(|(_, p)| p.nccl);
    if nccl || ask.job.hosts.len() > 1 || waiting::said_to_span(ask) || ask.job.library == Some(Library::Rccl) || waiting::p2p_switched_off(ask).is_some() || waiting::failed(ask) {
        return None;
    }
    let version = tail.next.get("version").unwrap_or("?");
    let mut finding = claim(ask, Severity::Warning, Confidence::Possible, format!("The last stage is the start of NCCL {version}: its first collective may hang over P2P"));
    finding.why = format!(
        "The line `using nccl=={version}` is printed right before ncclCommInitRank and a one-element all-reduce; what always follows it is missing.{} With several PCIe cards in one machine a P2P path that the IOMMU or ACS blocks stops exactly here. So does a rank that never started, or a virtual GPU layer: count the ranks that printed their first line, and run once with NCCL_DEBUG=INFO.",
        if tail.beat.is_some() { " A minute later the front process reports that its workers do not answer." } else { "" }
    );
    finding.ranks = tail.next.rank().into_iter().collect();
    finding.evidence = std::iter::once(tail.next.evidence()).chain(tail.beat.map(|b| b.evidence())).collect();
    Some(finding)
}
