//! nccl-too-old: The NCCL library is older than this GPU and does not know it.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "nccl-too-old";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The NCCL library is older than this GPU and does not know it.", explanation: include_str!("nccl_too_old.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let memory = ask.hits("arch.shared_memory");
    let kernels: Vec<Hit<'_>> = ask
        .any_of(&["cuda.failure", "cuda.failure_info"])
        .into_iter()
        .filter(|h| ["no kernel image is available", "invalid device function"].iter().any(|w| h.text().contains(w)) && !h.text().contains("HIP"))
        .collect();
    let api = ask.hits("version.too_old");
    let hits: Vec<Hit<'_>> = kernels.iter().chain(&memory).chain(&api).copied().collect();
    if hits.is_empty() {
        return Vec::new();
    }
    let version = ask.job.versions.first().cloned().unwrap_or_default();
    let name = if version.is_empty() { "NCCL".to_owned() } else { format!("NCCL {version}") };
    let (confidence, title, why) = if kernels.is_empty() && memory.is_empty() {
        (Confidence::Certain, format!("{name} is older than the program needs"), "The program was built for a newer NCCL than the one that was loaded.")
    } else if kernels.is_empty() {
        (
            Confidence::Likely,
            format!("{name} does not know this GPU: its kernels ask for too much shared memory"),
            "The library's kernels ask for more shared memory than the GPU grants, which happens where the GPU is newer than the library; they then fail to start.",
        )
    } else {
        (
            Confidence::Certain,
            format!("{name} holds no code for this GPU"),
            "NCCL's own kernel was refused because none was built for this architecture: the GPU is newer than the library.",
        )
    };
    let mut finding = Finding::new(ID, Severity::Error, confidence, title);
    prove(&mut finding, &hits);
    finding.why = format!("{why} Switching P2P off or raising time-outs does not help ({}).", ranks_text(&ranks_of(&hits)));
    finding.fixes = vec![fix(
        "Install a newer NCCL",
        "Always. See which one is loaded: a framework's wheel brings its own.",
        &["python -c 'import torch; print(torch.cuda.nccl.version())'", "pip install -U nvidia-nccl-cu12", "ldconfig -p | grep nccl"],
        "nothing",
        "none",
        "install the former version",
    )];
    finding.avoid = lines(&["NCCL_P2P_DISABLE=1: the kernels do not start on any path."]);
    finding.verify = lines(&["The new log's `NCCL version` line names the newer version."]);
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
    fn too_much_shared_memory_is_likely() {
        let f = found("h1:1:2 [0] NCCL INFO NCCL version 2.25.1+cuda12.8\nh1:1:2 [0] NCCL INFO ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856\n").expect("old");
        assert_eq!(f.confidence, super::Confidence::Likely);
        assert!(f.title.contains("2.25.1"), "{}", f.title);
        assert!(found("h1:1:2 [0] NCCL INFO NCCL version 2.25.1+cuda12.8\n").is_none());
    }
}
