//! AMD's faults: aperture violations, page faults, hardware exceptions, stuck rings.

use super::super::finding::Confidence;
use super::super::query::{Ask, Hit};
use super::Fault;
use std::collections::BTreeSet;

/// Faults of AMD GPUs, unless several Radeon cards under RCCL make them a matter of the copy engine or of P2P.
pub fn faults(ask: Ask<'_>) -> Vec<Fault<'_>> {
    let copy_engine = ask.hits("kernel.amdgpu_client").iter().any(|h| h.get("client").is_some_and(|c| c.starts_with("SDMA")))
        || ask.hits("kernel.ring_timeout").iter().any(|h| h.get("ring").is_some_and(|r| r.starts_with("sdma")))
        || ask.has("kernel.srbm_write");
    let several = several_radeons(ask);
    if several && copy_engine {
        return Vec::new();
    }
    let kinds = [
        "rocm.hw_exception",
        "rocm.aperture_violation",
        "rocm.memory_fault",
        "rocm.queue_abort",
        "kernel.amdgpu_page_fault",
        "kernel.ring_timeout",
        "kernel.mes_failed",
        "kernel.gpu_reset",
        "kernel.srbm_write",
    ];
    ask.any_of(&kinds)
        .into_iter()
        .filter_map(|hit| {
            let (meaning, hardware) = meaning(&hit, copy_engine)?;
            let confidence = if several && hit.entry.kind == "rocm.aperture_violation" { Confidence::Possible } else { Confidence::Likely };
            Some(Fault { hit, meaning, hardware, confidence })
        })
        .collect()
}

/// The record is of an AMD GPU, so that AMD's tools are those to use.
pub fn is_amd(hit: &Hit<'_>) -> bool {
    let kind = hit.entry.kind.as_str();
    let kernel = ["kernel.amdgpu", "kernel.ring", "kernel.mes", "kernel.gpu_reset", "kernel.srbm"].iter().any(|k| kind.starts_with(k));
    kernel || kind.starts_with("rocm.") || ["HIP ", "hipError", "HSA_", "rccl", "Memory access fault by GPU"].iter().any(|w| hit.text().contains(w))
}

/// An aperture violation in a run over several Radeon cards: the path between them comes before the card.
pub fn left_to_several_radeons(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    hit.entry.kind == "rocm.aperture_violation" && several_radeons(ask)
}

fn meaning(hit: &Hit<'_>, copy_engine: bool) -> Option<(String, bool)> {
    let device = hit.get("device").map_or_else(String::new, |d| format!(" on {d}"));
    let engine = if copy_engine { " by the copy engine (SDMA; HSA_ENABLE_SDMA=0 tests that)" } else { "" };
    Some(match hit.entry.kind.as_str() {
        "rocm.hw_exception" => (format!("the driver reported a hardware exception: {}", hit.get("reason").unwrap_or("no reason given")), true),
        "rocm.aperture_violation" => ("a kernel used an address beyond every aperture (MEMORY_APERTURE_VIOLATION)".to_owned(), false),
        "rocm.memory_fault" => (format!("memory access fault: {}", hit.get("reason").unwrap_or("no reason given")), hit.text().contains("ECC")),
        "rocm.queue_abort" => (format!("a GPU queue aborted with {}", hit.get("code").unwrap_or("an error")), false),
        "kernel.amdgpu_page_fault" => (format!("GPU page fault{device}{engine}"), false),
        "kernel.ring_timeout" => (format!("ring {} of the GPU timed out", hit.get("ring").unwrap_or("?")), true),
        "kernel.mes_failed" => ("the GPU's scheduler firmware does not answer".to_owned(), true),
        "kernel.gpu_reset" => ("the driver reset the GPU".to_owned(), true),
        "kernel.srbm_write" => (format!("the command stream was garbage{engine}"), true),
        _ => return None,
    })
}

/// At least two Radeon (RDNA) cards take part, as far as the log names them.
fn several_radeons(ask: Ask<'_>) -> bool {
    let names = ask.any_of(&["rocm.gpu_name", "nccl_tests.rank"]);
    let radeon = names.iter().any(|h| {
        h.get("gfx").is_some_and(|g| g.starts_with("10") || g.starts_with("11") || g.starts_with("12"))
            || (h.get("name").is_some_and(|n| n.contains("RX ") || n.contains("R9700") || n.contains("W7")))
    }) || ask.hits("kernel.gmc").iter().any(|h| h.num("gen").is_some_and(|g| g >= 10));
    let devices: BTreeSet<u16> = ask.procs().flat_map(|(_, p)| p.log.devices.iter().copied()).collect();
    let faulting: BTreeSet<&str> = ask.hits("kernel.amdgpu_page_fault").iter().filter_map(|h| h.get("device")).collect();
    let ranks = ask.job.nranks.unwrap_or(0);
    radeon && (ranks > 1 || devices.len() > 1 || faulting.len() > 1 || names.iter().map(Hit::count).sum::<u64>() > 1)
}
