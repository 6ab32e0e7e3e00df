//! gpu-arch-mismatch: The library was built without code for this GPU.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "gpu-arch-mismatch";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The library was built without code for this GPU.", explanation: include_str!("gpu_arch_mismatch.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut hits = ask.hits("rocm.no_kernel");
    hits.extend(ask.hits("torch.cuda_error").into_iter().filter(|h| h.text().contains("no kernel image is available") || h.text().contains("invalid device function")));
    hits.sort_by_key(Hit::at);
    if hits.is_empty() {
        return Vec::new();
    }
    let amd = hits.iter().any(|h| h.entry.kind == "rocm.no_kernel");
    let cards = ask.hits("rocm.gpu_name").iter().find_map(|h| h.get("gfx").map(|g| format!(" (gfx{g})"))).unwrap_or_default();
    let what = if amd { "The library" } else { "The program or the library" };
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Certain, format!("{what} holds no code for the GPU of {}{cards}", ranks_text(&ranks_of(&hits))));
    prove(&mut finding, &hits);
    // RCCL knows it before it starts a kernel.
    let asked = hits.iter().any(|h| h.text().contains("Build flag") || h.text().contains("unsupported architecture"));
    finding.why = if asked {
        "This build of RCCL says itself that it does not support the GPU. It is no fault of the machine: the package was made for other GPUs. Errors of other ranks follow from it."
            .to_owned()
    } else {
        "The GPU refuses the kernel because none was built for its architecture. It is no fault of the machine: the package was made for other GPUs, or two architectures are mixed and only one is in it. Errors of other ranks follow from it.".to_owned()
    };
    finding.fixes = if amd {
        vec![
            fix(
                "Install builds of RCCL and of the framework that know this GPU",
                "Always.",
                &["rocminfo | grep gfx", "python -c 'import torch; print(torch.cuda.get_arch_list())'"],
                "nothing",
                "none",
                "install the former packages",
            ),
            fix(
                "Hide the GPU that is not meant",
                "An iGPU or an older card stands beside the cards.",
                &["export HIP_VISIBLE_DEVICES=…   # without it"],
                "nothing",
                "none",
                "unset HIP_VISIBLE_DEVICES",
            ),
        ]
    } else {
        vec![fix(
            "Install builds of the framework and of NCCL that know this GPU",
            "Always.",
            &["nvidia-smi --query-gpu=name,compute_cap --format=csv", "python -c 'import torch; print(torch.cuda.get_arch_list())'"],
            "nothing",
            "none",
            "install the former packages",
        )]
    };
    finding.avoid = lines(&["HSA_OVERRIDE_GFX_VERSION for an architecture that is not its own: it starts, and faults later."]);
    finding.verify = lines(&["The list of architectures of the build holds the GPU's."]);
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
    fn the_refused_kernel_is_certain() {
        let f = found("h1:1:2 [1] /build/rccl/hipify/src/enqueue.cc:1 NCCL WARN HIP failure 'invalid device function'\n").expect("arch");
        assert_eq!(f.confidence, super::Confidence::Certain);
        assert!(found("h1:1:2 [0] [FATAL ERROR]: Build flag HIP_HOST_UNCACHED_MEMORY must be set to avoid memory corruption on mi350x\n").is_some());
        assert!(found("RuntimeError: CUDA error: no kernel image is available for execution on the device\n").is_some());
        assert!(found("RuntimeError: CUDA error: an illegal memory access was encountered\n").is_none());
    }
}
