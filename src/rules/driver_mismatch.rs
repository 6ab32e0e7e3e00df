//! driver-mismatch: The GPU driver does not fit the CUDA or ROCm version of the library.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "driver-mismatch";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The GPU driver does not fit the CUDA or ROCm version of the library.", explanation: include_str!("driver_mismatch.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

/// Texts of CUDA, NVML and torch that only a driver which does not fit prints.
const TEXTS: [&str; 9] = [
    "driver version is insufficient for CUDA runtime version",
    "unsupported toolchain",
    "forward compatibility was attempted on non supported HW",
    "unsupported display driver / cuda driver combination",
    "Driver/library version mismatch",
    "NVIDIA driver on your system is too old",
    "the provided PTX was compiled with an unsupported",
    "API call is not supported in the installed CUDA driver",
    "Driver Not Loaded",
];

/// The text speaks of a driver that does not fit.
pub(super) fn names_driver(text: &str) -> bool {
    TEXTS.iter().any(|t| text.contains(t))
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let refused = firmware(ask);
    if refused.is_some() {
        return refused.into_iter().collect();
    }
    let kinds = ["cuda.failure", "torch.cuda_error", "nvml.failed", "nvml.call_failed", "nccl_tests.failure", "app.exception", "warn.unknown"];
    let hits: Vec<Hit<'_>> = ask.any_of(&kinds).into_iter().filter(|h| names_driver(h.text())).collect();
    let Some(first) = hits.first() else { return Vec::new() };
    let unloaded = first.text().contains("Driver Not Loaded");
    let confidence = if unloaded { Confidence::Likely } else { Confidence::Certain };
    let who = ranks_text(&ranks_of(&hits));
    let title = if unloaded { format!("The NVIDIA driver is not loaded on the host of {who}") } else { format!("The GPU driver does not fit the CUDA version ({who})") };
    let mut finding = Finding::new(ID, Severity::Error, confidence, title);
    prove(&mut finding, &hits);
    finding.why = if unloaded {
        "The management library finds no driver: the kernel module is not loaded, or a container was started without the GPU runtime and does not see it.".to_owned()
    } else if first.text().contains("library version mismatch") {
        "The driver's kernel module and its libraries have different versions: the driver was updated and the machine has not been rebooted since, or a container brings its own libraries.".to_owned()
    } else {
        "The CUDA runtime that the program was built with needs a newer driver than this host has. Nothing of NCCL has run yet; what other ranks report follows from it.".to_owned()
    };
    finding.fixes = vec![
        fix(
            "Reboot, or load the module of the installed driver",
            "After a driver update, or where the module is missing.",
            &["nvidia-smi", "cat /proc/driver/nvidia/version", "sudo modprobe nvidia"],
            "root",
            "jobs of the node end",
            "",
        ),
        fix(
            "Install a driver that runs this CUDA version",
            "The driver is older than the runtime.",
            &["nvidia-smi | grep -i 'cuda version'", "python -c 'import torch; print(torch.version.cuda)'"],
            "reboot",
            "none",
            "install the former driver",
        ),
        fix(
            "Take a build for an older CUDA",
            "The driver cannot be changed.",
            &["# a wheel or image for the CUDA version that nvidia-smi shows, or older"],
            "nothing",
            "none",
            "install the former build",
        ),
    ];
    finding.verify = lines(&["nvidia-smi   # works, and its CUDA version is at least the program's"]);
    vec![finding]
}

/// RCCL refuses the pair of HIP runtime and GPU firmware.
fn firmware(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("rocm.refused");
    hits.first()?;
    let versions = ask.hits("rocm.scratch_reclaim");
    let named = versions.iter().find_map(|h| Some((h.get("runtime")?, h.get("firmware")?)));
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Certain, format!("RCCL refuses the firmware of the GPU ({})", ranks_text(&ranks_of(&hits))));
    prove(&mut finding, &hits);
    finding.evidence.extend(versions.first().map(Hit::evidence));
    finding.why = format!(
        "RCCL ends at its start: on MI300 and MI350 it wants a newer GPU firmware or HIP runtime than this host has{}, or the variable that makes up for it. Without it the runtime takes scratch memory back and gives it out again all the time. Later versions of RCCL only warn.",
        named.map_or_else(String::new, |(runtime, firmware)| format!(" (HIP runtime {runtime}, firmware {firmware})"))
    );
    finding.fixes = vec![
        fix(
            "Set the variable on every rank",
            "At once.",
            &["export HSA_NO_SCRATCH_RECLAIM=1"],
            "nothing",
            "GPU memory that kernels used as scratch is not given back",
            "unset HSA_NO_SCRATCH_RECLAIM",
        ),
        fix(
            "Update the GPU's firmware and the driver",
            "To do without the variable.",
            &["sudo amd-smi firmware   # or: rocm-smi --showfwinfo", "apt list --installed 2>/dev/null | grep -e amdgpu-dkms -e rocm-core"],
            "reboot",
            "none",
            "install the former driver",
        ),
    ];
    finding.verify = lines(&["The new log reaches `Init COMPLETE`, and holds no HSA_NO_SCRATCH_RECLAIM line."]);
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn the_runtimes_own_words_are_certain() {
        let f = found("h1:1:2 [0] init.cc:100 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'\n").expect("driver");
        assert_eq!(f.confidence, super::Confidence::Certain);
        let f = found("h1:1:2 [0] misc/nvmlwrap.cc:104 NCCL WARN nvmlInit_v2() failed: Driver Not Loaded\n").expect("unloaded");
        assert_eq!(f.confidence, super::Confidence::Likely);
        assert!(found("h1:1:2 [0] NCCL INFO cudaDriverVersion 11040\n").is_none());
    }

    #[test]
    fn a_firmware_that_rccl_refuses_is_named_with_its_variable() {
        let head = "h1:1:2 [0] [FATAL ERROR]: ";
        let told = "HSA_NO_SCRATCH_RECLAIM=1 must be set to avoid performance degradation with the current HIP configuration. (Runtime version:60342134, GPU Firmware version:168)";
        let f = found(&format!("{head}{told}\n{head}Please set HSA_NO_SCRATCH_RECLAIM=1 and rerun.\n")).expect("firmware");
        assert_eq!(f.confidence, super::Confidence::Certain);
        assert!(f.why.contains("firmware 168"), "{}", f.why);
        assert!(f.fixes[0].commands[0].contains("HSA_NO_SCRATCH_RECLAIM=1"));
        // Later versions warn and go on.
        assert!(found(&format!("h1:1:2 [0] init.cc:300 NCCL WARN {told}\n")).is_none());
    }
}
