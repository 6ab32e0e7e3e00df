//! The verdict over all findings.

use super::finding::{Finding, Severity, Verdict};
use super::query::Ask;
use super::waiting;

/// Decides the verdict.
pub fn decide(ask: Ask<'_>, findings: &[Finding]) -> Verdict {
    let any = |s: Severity| findings.iter().any(|f| f.severity == s);
    let waiting = ["stall", "p2p-iommu-acs-hang", "rccl-sdma-rdna", "missing-rank", "collective-timeout"];
    if any(Severity::Error) {
        let stalled = findings.iter().filter(|f| f.severity == Severity::Error).all(|f| waiting.contains(&f.id)) && !ask.job.procs.is_empty() && !ended(ask);
        return if stalled { Verdict::Stalled } else { Verdict::Failed };
    }
    if any(Severity::Warning) {
        return if findings.iter().any(|f| f.severity == Severity::Warning && waiting.contains(&f.id)) { Verdict::Stalled } else { Verdict::Degraded };
    }
    if works(ask) { Verdict::Healthy } else { Verdict::Inconclusive }
}

/// Something ended the job: an abort, a watchdog, an exception, a fault of a GPU.
fn ended(ask: Ask<'_>) -> bool {
    const FATAL: [&str; 9] = [
        "torch.watchdog_timeout",
        "torch.abort",
        "rocm.aperture_violation",
        "rocm.memory_fault",
        "rocm.hw_exception",
        "rocm.queue_abort",
        "kernel.amdgpu_page_fault",
        "kernel.ring_timeout",
        "kernel.gpu_reset",
    ];
    ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.kind.starts_with("app.") || FATAL.contains(&e.kind.as_str())))
}

/// Enough evidence that it works: every rank of the world communicator completed, or a collective has finished.
pub fn works(ask: Ask<'_>) -> bool {
    ask.all_complete() || ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| waiting::finished_one(ask, e)))
}
