//! topology-error: The topology that the library was given, or found, does not work.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "topology-error";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The topology that the library was given, or found, does not work.", explanation: include_str!("topology_error.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hits = ask.hits("rocm.topology_path");
    let Some(first) = hits.first() else { return Vec::new() };
    let links = first.get("links").map_or(String::new(), |n| format!(" with {n} links"));
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Certain, format!("RCCL cannot make sense of the links between the GPUs ({})", ranks_text(&ranks_of(&hits))));
    prove(&mut finding, &hits);
    finding.why = format!(
        "A link from one GPU{links} leads to another one that RCCL does not see from the other side, so it cannot build its topology and the init fails. That happens where only some GPUs of a fully connected set are visible to the job: a partial node, a partition mode, or different *_VISIBLE_DEVICES per process."
    );
    finding.fixes = vec![
        fix(
            "Let every rank see the same whole set of linked GPUs",
            "A scheduler or HIP_VISIBLE_DEVICES gives the job a part of the node.",
            &["rocm-smi --showtopo", "env | grep -e VISIBLE_DEVICES", "ls /sys/class/kfd/kfd/topology/nodes"],
            "nothing",
            "none",
            "",
        ),
        fix(
            "Take a newer RCCL",
            "The set of GPUs is whole and it still fails.",
            &["# newer releases handle partial sets of the same models"],
            "root",
            "none",
            "install the former package",
        ),
    ];
    finding.verify = lines(&["The new log reaches `Init COMPLETE`."]);
    vec![finding]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn a_missing_way_back_is_certain() {
        let f = found("h1:1:2 [2] /build/rccl/hipify/src/graph/paths.cc:120 NCCL WARN Failed to find reverse path from remNode 0/200000 nlinks 3 to node 0/700000\n")
            .expect("topology");
        assert_eq!(f.confidence, super::Confidence::Certain);
        assert!(found("h1:1:2 [0] NCCL INFO Could not find a path for pattern 4, falling back to simple order\n").is_none());
    }
}
