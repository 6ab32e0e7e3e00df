//! What proves the cause: the kernel's own fault lines, wrong results, host facts, and a second run without P2P.

use super::super::facts;
use super::super::finding::{Confidence, Evidence, Finding, Severity};
use super::super::query::{Ask, Hit, ranks_text};
use super::super::waiting;
use super::claim;
use crate::job::Iommu;
use std::collections::BTreeSet;

const FAULTS: [&str; 3] = ["kernel.io_page_fault", "kernel.io_page_fault_gpu", "kernel.dmar_fault"];

/// The IOMMU refused a GPU's transfers.
pub(super) fn blocked_by_iommu(ask: Ask<'_>) -> Option<Finding> {
    // Kernel lines may lie beside any attempt, so they are not asked of the last one only.
    let faults = ask.any_of(&FAULTS);
    faults.first()?;
    let buses = waiting::gpu_buses(ask);
    let on_gpu = |h: &Hit<'_>| h.get("device").and_then(waiting::bus_number).and_then(|b| buses.get(&b).copied());
    let matched: Vec<(&Hit<'_>, Option<u32>)> = faults.iter().filter_map(|h| on_gpu(h).map(|r| (h, r))).collect();
    let named: Vec<&Hit<'_>> = faults.iter().filter(|h| h.entry.kind == "kernel.io_page_fault_gpu").collect();
    let amd = |h: &&Hit<'_>| h.text().contains("amdgpu ");
    let (confidence, proof, ranks): (Confidence, Vec<&Hit<'_>>, BTreeSet<u32>) = if !matched.is_empty() {
        (Confidence::Certain, matched.iter().map(|(h, _)| *h).collect(), matched.iter().filter_map(|(_, r)| *r).collect())
    } else if !named.is_empty() {
        // A single AMD card faults for other reasons too.
        let cards: BTreeSet<&str> = named.iter().filter_map(|h| h.get("device")).collect();
        let several = cards.len() > 1 || ask.job.nranks.is_some_and(|n| n > 1);
        match (named.iter().all(amd), several) {
            (true, false) => return None,
            (true, true) => (Confidence::Likely, named, BTreeSet::new()),
            (false, _) => (Confidence::Certain, named, BTreeSet::new()),
        }
    } else if buses.is_empty() {
        (Confidence::Likely, faults.iter().collect(), BTreeSet::new())
    } else {
        // The faulting device is none of this job's GPUs.
        return None;
    };
    let devices: BTreeSet<&str> = proof.iter().filter_map(|h| h.get("device")).collect();
    let devices = if devices.is_empty() { "a device".to_owned() } else { devices.into_iter().take(4).collect::<Vec<_>>().join(", ") };
    let count: u64 = proof.iter().map(|h| h.count()).sum();
    let works = waiting::progressed(ask);
    let (severity, confidence) = if works { (Severity::Warning, Confidence::Possible) } else { (Severity::Error, confidence) };
    let mut finding = claim(ask, severity, confidence, format!("The IOMMU blocks the transfers of {devices}: {count} faults in the kernel log"));
    let whose = match confidence {
        Confidence::Certain if !ranks.is_empty() => {
            let list: Vec<u32> = ranks.iter().copied().collect();
            format!("{devices} is the GPU of {}, by its bus id in NCCL's own lines.", ranks_text(&list))
        }
        Confidence::Certain => format!("The line names the GPU's driver, so {devices} is a GPU."),
        _ if works => "Collectives have finished all the same, so not every transfer is lost; look at which device it is.".to_owned(),
        _ => format!("Whether {devices} is a GPU of the job does not stand in the log; `lspci -s {devices}` says so."),
    };
    finding.why = format!(
        "The kernel reports that the IOMMU refused a transfer of {devices}. {whose} A GPU whose writes to its peer are dropped waits for ever: NCCL prints no error, and every rank stands in the same collective."
    );
    finding.ranks = ranks.into_iter().collect();
    finding.evidence = proof.iter().map(|h| h.evidence()).take(4).collect();
    Some(finding)
}

/// A test of the GPUs' transfers read other data than was written.
pub(in crate::rules) fn wrong_results(ask: Ask<'_>) -> Option<Finding> {
    let p2p = ask.job.world().map(|c| waiting::local(ask, c)).is_some_and(|l| !l.p2p.is_empty());
    let mut proof: Vec<Hit<'_>> = ask.hits("p2p.verification_error");
    if p2p && !ask.multi_node() && !waiting::nvlink(ask) {
        proof.extend(ask.hits("nccl_tests.done").into_iter().filter(|h| h.num("wrong").is_some_and(|n| n > 0)));
    }
    proof.first()?;
    let mut finding = claim(ask, Severity::Error, Confidence::Certain, "P2P between the GPUs delivers wrong data".to_owned());
    finding.why = "The test compared what arrived with what was sent, and it differs. Transfers between the cards are redirected or dropped on the way, by the IOMMU or by ACS; results of any job over this path are worthless.".to_owned();
    finding.evidence = proof.iter().map(Hit::evidence).take(4).collect();
    Some(finding)
}

/// Of two runs in the logs the one over P2P stands and the one with P2P off works.
pub(super) fn works_without(ask: Ask<'_>) -> Option<Finding> {
    let job = ask.job;
    let off = |p: usize| {
        job.procs[p]
            .log
            .settings
            .keys()
            .any(|k| (k.name == "NCCL_P2P_DISABLE" && k.value.parse::<i64>().is_ok_and(|n| n != 0)) || (k.name == "NCCL_P2P_LEVEL" && (k.value == "LOC" || k.value == "0")))
    };
    let over = |c: &crate::job::Comm, test: &dyn Fn(&str) -> bool| c.members.iter().any(|m| job.comm_log(m).channels.iter().any(|ch| test(&ch.via)));
    let ended = |c: &crate::job::Comm| c.members.iter().any(|m| job.comm_log(m).end.as_ref().is_some_and(|(aborted, _)| !aborted));
    let finished = |c: &crate::job::Comm| ended(c) || c.members.iter().any(|m| job.procs[m.proc].log.ledger.iter().any(|e| waiting::finished_one(ask, e)));
    let candidates = || job.comms.iter().filter(|c| !c.is_child && !c.spans_nodes && c.nranks.is_some_and(|n| n > 1));
    let good = candidates().find(|c| c.members.iter().all(|m| off(m.proc)) && !over(c, &|v| v.starts_with("P2P")) && finished(c))?;
    let bad = candidates().find(|c| {
        c.nranks == good.nranks && c.members.iter().all(|m| !off(m.proc)) && over(c, &|v| v.starts_with("P2P") && !v.contains("/read")) && !finished(c) && waiting::is_whole(c)
    })?;
    let line = |c: &crate::job::Comm, pick: &dyn Fn(&crate::digest::CommLog) -> Option<std::sync::Arc<crate::digest::Sample>>| {
        c.members.iter().find_map(|m| pick(job.comm_log(m)).map(|s| super::super::query::evidence(job, m.rank, &s)))
    };
    let mut proof: Vec<Evidence> = Vec::new();
    proof.extend(line(bad, &|l| l.channels.first().map(|c| c.first.clone())));
    proof.extend(line(bad, &|l| l.last.clone()));
    proof.extend(waiting::p2p_switched_off(ask).map(|s| s.evidence()));
    proof.extend(line(good, &|l| l.end.as_ref().map(|(_, s)| s.clone()).or_else(|| l.last.clone())));
    let ranks: Vec<u32> = waiting::present(bad).into_iter().collect();
    let mut finding = claim(ask, Severity::Error, Confidence::Certain, format!("{} hang over P2P; the same job works with P2P off", ranks_text(&ranks)));
    finding.why = "The logs hold two runs of the same size: the one over P2P ends without a finished collective, the one with P2P switched off works. So the direct path between the cards does not deliver; an IOMMU that translates or ACS on a bridge is the usual reason.".to_owned();
    finding.ranks = ranks;
    finding.evidence = proof;
    Some(finding)
}

/// What stands in the way.
pub(super) struct Block {
    /// A sentence.
    pub text: String,
    /// The lines.
    pub lines: Vec<Evidence>,
    /// Addresses of the bridges that redirect, where they are told.
    pub bridges: Vec<String>,
    /// The IOMMU translates: the word of the command line that says so, if one does.
    pub iommu: Option<String>,
}

/// What the host's facts and kernel lines say of the way between the cards.
pub(super) enum Way {
    /// An IOMMU or ACS stands in it.
    Blocked(Block),
    /// The IOMMU passes through or is off, and no bridge redirects.
    Clear,
    /// Not enough is told.
    Unknown,
}

/// Reads it.
pub(super) fn way(ask: Ask<'_>) -> Way {
    let nodes = facts::single(ask);
    let buses = waiting::local_buses(ask);
    let iommu = nodes.iter().find_map(|n| n.iommu());
    let acs = nodes.iter().find_map(|n| n.acs(&buses));
    let kernel = ask.hits("kernel.iommu_default").into_iter().find(|h| h.get("type") == Some("Translated")).or_else(|| ask.hits("kernel.iommu_on").into_iter().next());
    let mut lines = Vec::new();
    let mut parts = Vec::new();
    let mut redirecting = Vec::new();
    if let Some((true, bridges)) = &acs {
        parts.push("ACS redirects requests on a PCIe bridge (SrcValid+, ReqRedir+)");
        lines.extend(bridges.iter().take(4).map(|a| facts::evidence(ask, &a.at)));
        redirecting.extend(bridges.iter().filter(|a| !a.device.is_empty()).map(|a| a.device.clone()));
    }
    let translates = match (iommu, kernel) {
        (Some((Iommu::Translates, line)), _) => Some(facts::evidence(ask, line)),
        (Some((Iommu::Untold, _)) | None, Some(kernel)) => Some(kernel.evidence()),
        _ => None,
    };
    if let Some(line) = translates {
        parts.push("the IOMMU is on and translates (no iommu=pt)");
        lines.push(line);
    }
    if !parts.is_empty() {
        let word = |line: &str| line.split_whitespace().find(|w| w.contains("iommu")).unwrap_or_default().to_owned();
        let told = nodes.iter().find_map(|n| n.facts.cmdline.as_ref()).map(|c| word(&c.value)).unwrap_or_default();
        return Way::Blocked(Block {
            text: format!("The host facts name the reason: {}.", parts.join(", and ")),
            bridges: redirecting,
            iommu: parts.iter().any(|p| p.starts_with("the IOMMU")).then_some(told),
            lines,
        });
    }
    let passes = iommu.is_some_and(|(state, _)| matches!(state, Iommu::Off | Iommu::Passthrough));
    if passes && acs.is_some_and(|(on, _)| !on) { Way::Clear } else { Way::Unknown }
}
