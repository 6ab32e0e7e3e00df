//! amd-ipc-failed: An AMD GPU's memory could not be shared with its peer process.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "amd-ipc-failed";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "An AMD GPU's memory could not be shared with its peer process.", explanation: include_str!("amd_ipc_failed.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut hits = ask.hits("rocm.ipc_failed");
    // Newer builds print the failed call's text alone; the place tells which call it was.
    hits.extend(ask.hits("cuda.failure").into_iter().filter(|h| {
        let file = h.entry.first.file.as_str();
        h.text().contains("HIP failure")
            && file.ends_with("p2p.cc")
            && ["invalid argument", "invalid device pointer", "invalid resource handle"].iter().any(|w| h.text().contains(w))
    }));
    hits.sort_by_key(Hit::at);
    if hits.is_empty() {
        return Vec::new();
    }
    let ranks = ranks_of(&hits);
    let named = hits.iter().any(|h| h.text().contains("hipIpc"));
    let confidence = if named { Confidence::Certain } else { Confidence::Likely };
    let mut finding = Finding::new(ID, Severity::Error, confidence, format!("RCCL could not share GPU memory between processes ({})", ranks_text(&ranks)));
    prove(&mut finding, &hits);
    finding.why = "RCCL chose P2P between the GPUs of this host and the call that exports or opens a peer's memory failed. It has no probe for this on AMD and gives up instead of taking shared memory, so the job ends here. Containers without the host's IPC namespace and some kernels without working P2P are the usual reasons.".to_owned();
    finding.fixes = vec![
        fix(
            "Go over shared memory",
            "Now, to get the job going.",
            &["export NCCL_P2P_DISABLE=1", "export NCCL_PROTO=Simple   # on gfx12 (R9700, RX 9070, RX 9060) shared memory needs it"],
            "nothing",
            "bandwidth between the cards",
            "unset both",
        ),
        fix(
            "Share the host's IPC and devices with the container",
            "The ranks run in containers.",
            &["docker run --ipc=host --device=/dev/kfd --device=/dev/dri --security-opt seccomp=unconfined …"],
            "nothing",
            "less isolation",
            "start it without the options",
        ),
        fix(
            "Take AMD's own kernel driver, or a kernel with PCI P2PDMA",
            "`zgrep -e PCI_P2PDMA -e DMABUF_MOVE_NOTIFY /proc/config.gz` shows that they are off.",
            &["uname -r", "zgrep -e PCI_P2PDMA -e DMABUF_MOVE_NOTIFY /proc/config.gz"],
            "reboot",
            "none",
            "boot the former kernel",
        ),
    ];
    finding.avoid = lines(&["HSA_ENABLE_SDMA=0: the copy engine has nothing to do with it."]);
    finding.verify = lines(&["The new log shows `Connected all rings` and no hipIpc warning."]);
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
    fn the_failed_call_is_certain() {
        let f = found("[2025-01-01 10:00:00] h1:1:2 [2] /build/rccl/hipify/src/transport/p2p.cc:256 NCCL WARN hipIpcGetMemHandle failed : invalid argument\n").expect("ipc");
        assert_eq!((f.severity, f.confidence), (super::Severity::Error, super::Confidence::Certain));
        assert!(found("h1:1:2 [0] NCCL INFO Channel 00/0 : 0[3000] -> 1[7000] via P2P/IPC comm 0x5a nRanks 02\n").is_none());
    }
}
