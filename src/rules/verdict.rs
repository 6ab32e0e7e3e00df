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
    if works(ask) && !broke(ask) { Verdict::Healthy } else { Verdict::Inconclusive }
}

/// A process was ended by a failure that no finding explains: what came so far says nothing of the rest.
fn broke(ask: Ask<'_>) -> bool {
    const ENDS: [&str; 7] = ["torch.terminate", "torch.abort", "app.terminate", "launcher.first_failure", "launcher.child_failed", "vllm.engine_dead", "sglang.child_failed"];
    let end = super::teardown::Teardown::of(ask);
    ask.any_of(&ENDS).iter().any(|h| !end.covers(h))
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
    (ask.all_complete() && waiting::table_without_row(ask).is_none()) || ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| waiting::finished_one(ask, e)))
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Verdict;

    #[test]
    fn a_run_that_was_ended_by_an_unknown_failure_is_not_healthy() {
        let rank = |r: u32| format!("h1:{0}:{0} [{r}] NCCL INFO comm 0x5{r} rank {r} nranks 2 cudaDev {r} busId {1}1000 - Init COMPLETE\n", 900 + r, r + 1);
        let run = rank(0) + &rank(1);
        assert_eq!(analyze_texts(&[("run.log", &run)]).verdict, Verdict::Healthy);
        let ended = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank 1] NCCL watchdog thread terminated with exception: trace INTERNAL ASSERT FAILED\n";
        assert_ne!(analyze_texts(&[("run.log", &(run + ended))]).verdict, Verdict::Healthy);
    }
}
