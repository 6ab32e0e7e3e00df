//! gpu-not-visible: The process sees no GPU, or not the one that it asks for.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, capital, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "gpu-not-visible";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The process sees no GPU, or not the one that it asks for.", explanation: include_str!("gpu_not_visible.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

const TEXTS: [&str; 10] = [
    "no GPUs found",
    "no CUDA-capable device is detected",
    "invalid device ordinal",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "no ROCm-capable device is detected",
    "No HIP GPUs are available",
    "hipErrorInvalidDevice",
    "hipErrorNoDevice",
    TAKEN,
];

/// A GPU that is there and cannot be taken.
const TAKEN: &str = "busy or unavailable";

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let kinds = ["cuda.failure", "torch.cuda_error", "nccl_tests.failure", "app.exception", "nvml.failed", "nvml.missing", "cuda.no_driver_library", "rocm.smi_failure"];
    let hits: Vec<Hit<'_>> = ask.any_of(&kinds).into_iter().filter(shows).collect();
    // Torch sees no GPU either where the driver is too old for it.
    if ask.hits("torch.cuda_error").iter().any(|h| super::driver_mismatch::names_driver(h.text())) {
        return Vec::new();
    }
    let told: Vec<Hit<'_>> = hits.iter().copied().filter(|h| !h.entry.kind.starts_with("rocm.") && h.entry.kind != "nvml.missing").collect();
    // AMD's topology may be hidden and the job still work; alone it is worth no alarm.
    let (severity, hits) = if told.is_empty() && super::verdict::works(ask) { return Vec::new() } else { (Severity::Error, hits) };
    let Some(first) = told.first().or(hits.first()) else { return Vec::new() };
    let taken = first.text().contains(TAKEN);
    let ordinal = first.text().contains("invalid device ordinal");
    let peer = first.entry.first.file.contains("p2p");
    let those = ranks_text(&ranks_of(&hits));
    let who = capital(&those);
    let (title, why) = if taken {
        (
            format!("{who} cannot take its GPU: it is busy or unavailable"),
            "The driver refused a context on this GPU. In exclusive mode (`Exclusive_Process`) one process alone may have it: another program holds it, or two processes of the job ask for the same one, also for a moment only. A virtual GPU without its licence or without unified memory, and a GPU that needs a reset, say the same.",
        )
    } else if ordinal && peer {
        (
            format!("{who} cannot open the peer's GPU memory: the peer's GPU is not visible in its process"),
            "Opening the peer's memory failed with `invalid device ordinal`: every process sees only its own GPU, or the containers do not share the devices. A GPU in a bad state is the alternative.",
        )
    } else if ordinal {
        (
            format!("The GPU that is asked for is not visible to {those}"),
            "The process asked for a device number beyond the GPUs that it sees: more processes than GPUs, or *_VISIBLE_DEVICES hides some.",
        )
    } else {
        (
            format!("No GPU is visible to {those}"),
            "The process sees no GPU or no driver at all: the job was started without asking for one (--gres, --gpus), the container without the GPU runtime, or *_VISIBLE_DEVICES is empty.",
        )
    };
    let confidence = if told.is_empty() || peer || taken || first.entry.kind == "nvml.failed" { Confidence::Likely } else { Confidence::Certain };
    let mut finding = Finding::new(ID, severity, confidence, title);
    prove(&mut finding, &hits);
    why.clone_into(&mut finding.why);
    finding.fixes = vec![
        fix(
            "Ask for the GPUs when the job is started",
            "Slurm, Docker, Kubernetes.",
            &["srun --gpus-per-node=N …", "docker run --gpus all …   # AMD: --device=/dev/kfd --device=/dev/dri", "# Kubernetes: resources.limits: nvidia.com/gpu: N"],
            "nothing",
            "none",
            "",
        ),
        fix(
            "Let every local process see all GPUs of the node, and choose by local rank",
            "One GPU per process is set by CUDA_VISIBLE_DEVICES or --gpus-per-task.",
            &["env | grep VISIBLE_DEVICES", "nvidia-smi -L   # inside the job"],
            "nothing",
            "none",
            "",
        ),
    ];
    if taken {
        let shared = fix(
            "Let several processes use a GPU, or end the one that holds it",
            "`nvidia-smi` shows another process on it, or the compute mode Exclusive_Process.",
            &["nvidia-smi --query-gpu=index,compute_mode --format=csv", "nvidia-smi --query-compute-apps=gpu_uuid,pid,name --format=csv", "sudo nvidia-smi -c DEFAULT"],
            "root",
            "others can use the GPU meanwhile",
            "sudo nvidia-smi -c EXCLUSIVE_PROCESS",
        );
        finding.fixes.insert(0, shared);
        finding.fixes.remove(1);
    }
    finding.avoid = lines(&["NCCL_* settings: the library cannot bring a GPU into sight."]);
    finding.verify = lines(&["nvidia-smi -L   # or rocminfo, inside the container and as the job's user"]);
    vec![finding]
}

fn shows(hit: &Hit<'_>) -> bool {
    match hit.entry.kind.as_str() {
        "nvml.failed" => ["ERROR_LIBRARY_NOT_FOUND", "Not Found", "No Permission"].iter().any(|t| hit.text().contains(t)),
        "cuda.no_driver_library" | "nvml.missing" => true,
        "rocm.smi_failure" => hit.text().contains("topo/nodes") || hit.text().contains("init failure"),
        _ => TEXTS.iter().any(|t| hit.text().contains(t)),
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn no_device_is_certain_and_a_peers_device_likely() {
        let f = found("node1: Test CUDA failure common.cu:893 'no CUDA-capable device is detected'\n").expect("none");
        assert_eq!(f.confidence, super::Confidence::Certain);
        let f = found("h1:1:2 [0] transport/p2p.cc:251 NCCL WARN Cuda failure 101 'invalid device ordinal'\n").expect("peer");
        assert_eq!(f.confidence, super::Confidence::Likely);
        assert!(found("h1:1:2 [0] transport/p2p.cc:251 NCCL WARN Cuda failure 1 'invalid argument'\n").is_none());
    }

    #[test]
    fn a_gpu_that_is_taken_is_not_one_that_is_missing() {
        let f = found("node1: Test CUDA failure common.cu:1304 'CUDA-capable device(s) is/are busy or unavailable'\n").expect("taken");
        assert_eq!(f.confidence, super::Confidence::Likely);
        assert!(f.fixes[0].commands.iter().any(|c| c.contains("compute_mode")), "{:?}", f.fixes[0].commands);
        assert!(found("[rank1]: torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n").is_some());
    }

    #[test]
    fn a_container_without_amds_devices_shows_none() {
        assert!(found("node1: Test HIP failure common.cu:1129 'hipErrorInvalidDevice'\n").is_some());
        assert!(found("UserWarning: HIP initialization: Unexpected error from hipGetDeviceCount(). Error 101: hipErrorInvalidDevice (Triggered internally at c10/hip/HIPFunctions.cpp:110.)\n").is_some());
    }
}
