//! amd-pcie-atomics: An AMD GPU sits in a slot without PCIe atomics, which the first collective needs.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "amd-pcie-atomics";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: ID,
        aliases: &[],
        summary: "An AMD GPU sits in a slot without PCIe atomics, which the first collective needs.",
        explanation: include_str!("amd_pcie_atomics.md"),
    },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hits = ask.hits("rocm.illegal_state");
    if hits.is_empty() {
        return Vec::new();
    }
    let kernel = ask.hits("kernel.pcie_atomics");
    let confidence = if kernel.is_empty() { Confidence::Likely } else { Confidence::Certain };
    let proof: Vec<Hit<'_>> = hits.iter().take(3).chain(&kernel).copied().collect();
    let device = kernel.iter().find_map(|h| h.get("device")).map_or(String::new(), |d| format!(" of {d}"));
    let mut finding =
        Finding::new(ID, Severity::Error, confidence, format!("The first collective cannot start on {}: the slot{device} lacks PCIe atomics", ranks_text(&ranks_of(&hits))));
    prove(&mut finding, &proof);
    finding.why = if kernel.is_empty() {
        "RCCL's first kernel asks for calls back to the host, and the runtime refuses them on a GPU whose slot has no PCIe atomics. That is the known reason for this text after a clean init; `dmesg | grep -i atomic` decides it.".to_owned()
    } else {
        "RCCL's first kernel asks for calls back to the host, and the runtime refuses them on a GPU whose slot has no PCIe atomics; the kernel log says so of this card. P2P and shared memory have nothing to do with it.".to_owned()
    };
    finding.fixes = vec![
        fix(
            "Put the card into a slot that is joined to the processor directly",
            "A slot behind the chipset, an adapter or an old riser mostly lacks atomics.",
            &["sudo lspci -vvv | grep -i -e 'AtomicOpsCap' -e 'AtomicOpsCtl'"],
            "root",
            "none",
            "",
        ),
        fix(
            "Take an RCCL build that needs no calls back to the host",
            "There is no better slot.",
            &["# a release build without device-side assertions and printf"],
            "nothing",
            "none",
            "install the former package",
        ),
    ];
    finding.avoid = lines(&["NCCL_P2P_DISABLE=1 and iommu=pt: the kernel does not even start, whatever the path."]);
    finding.verify = lines(&["sudo dmesg | grep -i 'atomic'", "AMD_LOG_LEVEL=1 shows `Pcie atomics not enabled` no more"]);
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
    fn the_kernel_line_makes_it_certain() {
        let warn = "h1:1:2 [0] /build/rccl/hipify/src/enqueue.cc:2061 NCCL WARN HIP failure 'the operation cannot be performed in the present state'\n";
        assert_eq!(found(warn).expect("likely").confidence, super::Confidence::Likely);
        let both = format!("{warn}[  12.5] amdgpu 0000:07:00.0: amdgpu: PCIE atomic ops is not supported\n");
        assert_eq!(found(&both).expect("certain").confidence, super::Confidence::Certain);
        assert!(found("[  12.5] amdgpu 0000:07:00.0: amdgpu: PCIE atomic ops is not supported\n").is_none());
    }
}
