//! The library's own advice as evidence: HINT lines (2.30.7+) that follow a proof, and diagnostics (2.31+).

use super::finding::Finding;
use super::query::{Ask, Hit};

/// Causes beside which a HINT is shown.
const WITH_HINT: [&str; 6] = ["roce-qp-gid-mtu", "ib-completion-error", "rail-topology", "ib-port-error", "gdr-disabled", "topology-error"];

/// Lines within which a HINT belongs to the warning before it.
const NEAR: u64 = 8;

/// Adds up to two lines of advice that stand behind one of the finding's proofs.
pub fn attach(ask: Ask<'_>, finding: &mut Finding) {
    if WITH_HINT.contains(&finding.id) {
        let near = |h: &&Hit<'_>| {
            let e = h.evidence();
            finding.evidence.iter().any(|p| p.file == e.file && p.line < e.line && e.line - p.line <= NEAR)
        };
        let hints: Vec<_> = ask.hits("ib.hint").iter().filter(near).take(2).map(Hit::evidence).collect();
        finding.evidence.extend(hints);
    }
    if finding.id == "p2p-iommu-acs-hang" {
        finding.evidence.extend(ask.any_of(&["diag.iommu", "diag.ats"]).iter().take(2).map(Hit::evidence));
    }
}
