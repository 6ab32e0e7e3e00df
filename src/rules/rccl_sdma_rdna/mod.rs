//! rccl-sdma-rdna: Several Radeon cards hang or fault under RCCL.

use super::facts;
use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, evidence, ranks_text};
use super::remedy::{fix, lines};
use super::{Cause, Rule, waiting};
use crate::event::Library;
use crate::job::{Iommu, NodeFacts};
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

const ID: &str = "rccl-sdma-rdna";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "Several Radeon cards hang or fault under RCCL.", explanation: include_str!("../rccl_sdma_rdna.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    if ask.job.library != Some(Library::Rccl) && !ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.kind.starts_with("kernel.") || e.kind.starts_with("rocm."))) {
        return Vec::new();
    }
    copy_engine(ask).or_else(|| hang(ask)).or_else(|| aperture(ask)).into_iter().collect()
}

/// The family of the cards, as far as a line names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Cards {
    /// RDNA 4: gfx1200 and gfx1201.
    Gfx12,
    /// RDNA 1 to 3.
    Rdna,
    /// Vega, Radeon VII, Instinct: another architecture.
    Other,
    /// No line names them.
    Unknown,
}

fn cards(ask: Ask<'_>) -> Cards {
    let by_line = ask.hits("rocm.gpu_name").into_iter().filter_map(|h| h.entry.first.get("gfx").map(by_arch));
    let by_fact = ask.job.facts.nodes.iter().flat_map(|n| &n.facts.gpus).filter_map(|g| g.arch.strip_prefix("gfx")).map(by_arch);
    let by_driver = ask.hits("kernel.gmc").into_iter().map(|h| match h.num("gen") {
        Some(12) => Cards::Gfx12,
        Some(10 | 11) => Cards::Rdna,
        _ => Cards::Other,
    });
    let by_name = waiting::gpu_names(ask).into_iter().map(by_name);
    // Beside the cards a node may list its processor's GPU; the newest family decides.
    by_line.chain(by_fact).chain(by_driver).chain(by_name).min().unwrap_or(Cards::Unknown)
}

fn by_arch(gfx: &str) -> Cards {
    match gfx.get(..2) {
        Some("12") if gfx.len() == 4 => Cards::Gfx12,
        Some("10" | "11") if gfx.len() == 4 => Cards::Rdna,
        _ => Cards::Other,
    }
}

fn by_name(name: &str) -> Cards {
    const GFX12: [&str; 4] = ["R9700", "RX 9070", "RX 9060", "AI PRO R9"];
    const RDNA: [&str; 8] = ["RX 7", "RX 6", "RX 5", "W7", "W6", "W5", "7900 XT", "V620"];
    if GFX12.iter().any(|m| name.contains(m)) {
        Cards::Gfx12
    } else if RDNA.iter().any(|m| name.contains(m)) && !name.contains("RX 580") && !name.contains("RX 570") && !name.contains("RX 590") {
        Cards::Rdna
    } else {
        Cards::Other
    }
}

/// How many GPUs take part, as far as the log shows.
fn count(ask: Ask<'_>) -> usize {
    let kernel: BTreeSet<&str> = ask.any_of(&["kernel.amdgpu_page_fault", "kernel.amdgpu_client"]).iter().filter_map(|h| h.entry.first.get("device")).collect();
    let tests = ask.hits("nccl_tests.rank").len();
    let ggml = ask.hits("rocm.gpu_name").iter().filter_map(|h| h.num("index")).collect::<BTreeSet<_>>().len();
    let channels = ask.comms().flat_map(|c| ask.views(c)).flat_map(|(_, l)| &l.channels).map(|c| c.from.max(c.to) as usize + 1).max().unwrap_or(0);
    [kernel.len(), tests, ggml, channels, ask.job.nranks.unwrap_or(0) as usize].into_iter().max().unwrap_or(0)
}

fn claim(ask: Ask<'_>, severity: Severity, confidence: Confidence, title: String) -> Finding {
    let mut finding = Finding::new(ID, severity, confidence, title);
    finding.path = vec!["q-cluster-or-single-host-p2p", "q-p2p-nvidia-or-amd-r9700", "sol-multi-r9700-rccl-sdma-tuning"];
    finding.hosts = ask.hosts().into_iter().map(str::to_owned).collect();
    finding.verify = lines(&["cat /proc/cmdline   # iommu=pt is there", "rocm-smi --showtopo", "sudo dmesg | grep -i amdgpu   # no page fault, no ring timeout after a run"]);
    finding
}

/// The copy engine faulted or stood still.
fn copy_engine(ask: Ask<'_>) -> Option<Finding> {
    let mut proof: Vec<Hit<'_>> = ask.hits("kernel.amdgpu_client").into_iter().filter(|h| h.get("client").is_some_and(|c| c.starts_with("SDMA"))).collect();
    proof.extend(ask.hits("kernel.ring_timeout").into_iter().filter(|h| h.get("ring").is_some_and(|r| r.starts_with("sdma"))));
    proof.extend(ask.hits("kernel.srbm_write"));
    proof.sort_by_key(Hit::at);
    proof.first()?;
    let cards = cards(ask);
    let gpus = count(ask);
    // With one card it is a fault of that card; another rule names it.
    if gpus < 2 || cards == Cards::Other {
        return None;
    }
    let confidence = if cards == Cards::Unknown { Confidence::Possible } else { Confidence::Certain };
    let mut finding = claim(ask, Severity::Error, confidence, format!("The copy engine (SDMA) of a Radeon card failed in a run over {gpus} GPUs"));
    finding.why = format!(
        "The kernel names the SDMA engine as the one that faulted or did not end in time; with it every copy between the {gpus} cards stands. {}",
        if cards == Cards::Unknown {
            "Which cards these are does not stand in the log; on other architectures look for a hardware fault first."
        } else {
            "Copies by shader kernels instead of SDMA avoid it."
        }
    );
    finding.ranks = super::query::ranks_of(&proof);
    finding.evidence = proof.iter().take(5).map(Hit::evidence).collect();
    finding.fixes = vec![sdma(), simple(), p2p_off(), pass_through(), hide_igpu()];
    finding.avoid = lines(&["Raising time-outs: the engine is reset, the job does not come back."]);
    Some(finding)
}

/// All ranks are up and the first collectives do not end.
fn hang(ask: Ask<'_>) -> Option<Finding> {
    let comm = ask.job.world()?;
    let cards = cards(ask);
    let excluded =
        ask.job.library != Some(Library::Rccl) || ask.multi_node() || !waiting::is_whole(comm) || cards == Cards::Other || waiting::progressed(ask) || waiting::failed(ask);
    let other = ask.any_of(&["rocm.ipc_failed", "rocm.illegal_state", "rocm.no_kernel", "kernel.pcie_atomics", "rocm.topology_path"]);
    let dog = waiting::watchdog(ask);
    if excluded || !other.is_empty() || dog.late || !ask.all_complete() {
        return None;
    }
    let ranks: Vec<u32> = waiting::present(comm).into_iter().collect();
    let dead = ranks.iter().all(|r| dog.ranks.contains(r));
    let tail = waiting::framework_tail(ask).and_then(|t| t.beat);
    let signed = dead || tail.is_some() || waiting::silence(ask).is_some();
    let calls: BTreeSet<u64> = ask.views(comm).map(|(_, l)| l.calls.len).collect();
    let entered = calls.len() == 1 && !calls.contains(&0);
    let ll = cards == Cards::Gfx12 && ask.version().is_some_and(|v| (v.0, v.1) == (2, 27)) && ask.setting_where("NCCL_PROTO", |v| v.eq_ignore_ascii_case("simple")).is_none();
    let p2p = waiting::local(ask, comm).shm.is_empty();
    let iommu = facts::single(ask).into_iter().find_map(NodeFacts::iommu).filter(|(state, _)| *state == Iommu::Translates && p2p && signed && !ll);
    let (severity, confidence) = match (ll, signed || (ll && entered)) {
        _ if iommu.is_some() => (Severity::Error, Confidence::Likely),
        (true, true) => (Severity::Error, Confidence::Likely),
        (true, false) | (false, true) => (Severity::Warning, Confidence::Possible),
        (false, false) => (Severity::Info, Confidence::Possible),
    };
    let version = ask.job.versions.first().map_or("?", String::as_str);
    let title = if ll {
        format!("RCCL {version} on gfx12: {} complete the init and stand in the first collective (LL deadlock)", ranks_text(&ranks))
    } else if severity == Severity::Info {
        "If the job stands still here: the path between the AMD GPUs is the first suspect".to_owned()
    } else {
        format!("{} complete RCCL's init and the first collective does not end", ranks_text(&ranks))
    };
    let mut finding = claim(ask, severity, confidence, title);
    let standing = if signed {
        "and something in the log says that they wait"
    } else if entered {
        "the same number of collectives was called on each and none is shown to have ended"
    } else {
        "and the logs end there, which a sound run may do too"
    };
    finding.why = if ll {
        format!(
            "All ranks print Init COMPLETE, {standing}. On RDNA 4 (gfx1200, gfx1201) RCCL 2.27 may choose the LL protocol for small messages although its kernels lack the ordering that these GPUs need: all cards run at 100 % and nothing ends. NCCL_PROTO is not Simple here. A rank that never called the collective would look the same."
        )
    } else {
        format!(
            "All ranks print Init COMPLETE, {standing}. RCCL names no GPU model in these lines, so the reason stays open: on R9700 and RX 9070/9060 the LL protocol, else the IOMMU or P2P between the cards. `rocminfo | grep gfx` says which cards these are."
        )
    };
    let mut proof: Vec<_> = dog.first.iter().take(2).map(Hit::evidence).collect();
    proof.extend(tail.map(|t| t.evidence()));
    proof.extend(ask.views(comm).filter_map(|(m, l)| l.complete.as_ref().map(|s| evidence(ask.job, m.rank, s))).take(3));
    proof.extend(ask.hits("rocm.missing_iommu_pt").first().map(Hit::evidence));
    finding.ranks = ranks;
    if let Some((_, line)) = iommu {
        finding.why.push_str(" By the kernel's command line the IOMMU is on and translates, which transfers between the cards often do not survive; iommu=pt is the way out.");
        proof.insert(0, facts::evidence(ask, line));
    }
    finding.evidence = proof;
    finding.fixes = if iommu.is_some() { vec![pass_through(), p2p_off(), simple(), hide_igpu(), sdma()] } else { vec![simple(), pass_through(), p2p_off(), hide_igpu(), sdma()] };
    if ll {
        finding.fixes.insert(1, older());
        finding.avoid.push("NCCL_P2P_DISABLE=1 alone: over shared memory the same protocol deadlocks all the same.".to_owned());
    }
    finding.avoid.push("NCCL_ALGO=Ring: it changes the algorithm, neither the protocol nor the copy engine.".to_owned());
    Some(finding)
}

/// A kernel used a bad address in a run over several Radeon cards.
fn aperture(ask: Ask<'_>) -> Option<Finding> {
    let proof = ask.hits("rocm.aperture_violation");
    proof.first()?;
    let rccl = ask.procs().any(|(_, p)| p.log.rccl) || ask.job.world().is_some();
    if !rccl || count(ask) < 2 || !matches!(cards(ask), Cards::Gfx12 | Cards::Rdna) {
        return None;
    }
    let mut finding = claim(ask, Severity::Error, Confidence::Possible, "A GPU kernel used a bad address in a run over several Radeon cards".to_owned());
    finding.why = "The violation comes from a shader, not from the copy engine: a pointer that was never mapped, for instance a peer's memory over P2P, or a fault of the program's own kernels. If the same job runs on one card, the path between the cards is to blame.".to_owned();
    finding.ranks = super::query::ranks_of(&proof);
    finding.evidence = proof.iter().take(4).map(Hit::evidence).collect();
    finding.fixes = vec![p2p_off(), simple(), pass_through(), hide_igpu()];
    Some(finding)
}

fn simple() -> super::finding::Fix {
    fix(
        "Use the Simple protocol",
        "First on R9700, RX 9070 and 9060 with RCCL 2.27 (ROCm 7.2).",
        &["export NCCL_PROTO=Simple"],
        "nothing",
        "higher latency of small messages",
        "unset NCCL_PROTO after an update that brings the fix",
    )
}

fn older() -> super::finding::Fix {
    fix("Take an RCCL without the fault", "To get rid of the setting.", &["# librccl of ROCm 7.1, or a build of 2.28.3 and later"], "root", "none", "install the former package")
}

fn sdma() -> super::finding::Fix {
    fix(
        "Copy without the SDMA engine",
        "The kernel log names SDMA0, SDMA1 or `ring sdma`.",
        &["export HSA_ENABLE_SDMA=0"],
        "nothing",
        "copies to and from the host are slower",
        "unset HSA_ENABLE_SDMA",
    )
}

fn p2p_off() -> super::finding::Fix {
    fix(
        "Prove whether P2P is to blame",
        "After NCCL_PROTO=Simple; together with it on gfx12.",
        &["export NCCL_P2P_DISABLE=1", "export NCCL_PROTO=Simple"],
        "nothing",
        "shared memory instead of P2P",
        "unset both",
    )
}

fn pass_through() -> super::finding::Fix {
    fix(
        "Let the IOMMU pass transfers through",
        "/proc/cmdline lacks iommu=pt and the job runs with P2P off.",
        &["# add `amd_iommu=on iommu=pt` (Intel: `intel_iommu=on iommu=pt`) to GRUB_CMDLINE_LINUX in /etc/default/grub", "sudo update-grub && sudo reboot"],
        "reboot",
        "devices are no longer isolated from each other",
        "take the words out again",
    )
}

fn hide_igpu() -> super::finding::Fix {
    fix(
        "Hide the processor's own GPU",
        "`rocminfo` lists an iGPU beside the cards.",
        &["rocminfo | grep -e 'Marketing Name' -e gfx", "export HIP_VISIBLE_DEVICES=…   # the cards only, by their place in that list"],
        "nothing",
        "none",
        "unset HIP_VISIBLE_DEVICES",
    )
}
