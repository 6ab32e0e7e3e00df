//! The verdict over all findings.

use super::finding::{Finding, Severity, Verdict};
use super::query::Ask;
use crate::event::tables::PROOF_OF_COLLECTIVE;

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

/// Something ended the job: an abort, a watchdog, an exception.
fn ended(ask: Ask<'_>) -> bool {
    ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.kind.starts_with("app.") || e.kind == "torch.watchdog_timeout" || e.kind == "torch.abort"))
}

/// Enough evidence that it works: every rank of the world communicator completed, or a collective has finished.
pub fn works(ask: Ask<'_>) -> bool {
    ask.all_complete() || ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| PROOF_OF_COLLECTIVE.contains(&e.kind.as_str())))
}
