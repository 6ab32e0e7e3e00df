//! peer-access-failed: A GPU's memory could not be opened by a peer GPU or process of the same host.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "peer-access-failed";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: ID,
        aliases: &[],
        summary: "A GPU's memory could not be opened by a peer GPU or process of the same host.",
        explanation: include_str!("peer_access_failed.md"),
    },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

/// Who wanted the memory, which decides what to switch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// NCCL's shared memory between processes, made by the driver.
    HostMemory,
    /// More peers than a GPU can map.
    TooMany,
    /// A framework's own all-reduce.
    Framework,
    /// NCCL's P2P transport.
    P2p,
}

/// Whether this rule reads the record of a failed call.
pub fn reads(hit: &Hit<'_>) -> bool {
    wish(hit).is_some()
}

fn wish(hit: &Hit<'_>) -> Option<Wish> {
    const HANDLE: [&str; 3] = ["invalid argument", "invalid resource handle", "mapping of buffer object failed"];
    let text = hit.text();
    let file = hit.entry.first.file.as_str();
    // A torn line may have lost the word, not the long path of AMD's builds.
    if ["HIP", "hipIpc", "rccl", "hipify"].iter().any(|w| text.contains(w)) {
        return None;
    }
    let said = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if said(&["peer mapping resources exhausted", "TOO_MANY_PEERS"]) {
        return Some(Wish::TooMany);
    }
    let refused = said(&["peer access is not supported", "PEER_ACCESS_UNSUPPORTED"]);
    let own = match hit.entry.kind.as_str() {
        "app.cuda_error" => text.contains("custom_all_reduce") && (refused || said(&HANDLE)),
        "app.exception" | "torch.cuda_error" => refused && !text.contains("NCCL"),
        _ => false,
    };
    match hit.entry.kind.as_str() {
        _ if own => Some(Wish::Framework),
        "cuda.failure" if refused && file.ends_with("shm.cc") => Some(Wish::HostMemory),
        "p2p.ipc_failed" | "p2p.peer_failed" => Some(Wish::P2p),
        "cuda.failure" if refused || (file.ends_with("p2p.cc") && said(&HANDLE)) => Some(Wish::P2p),
        _ => None,
    }
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let kinds = ["p2p.ipc_failed", "p2p.peer_failed", "cuda.failure", "torch.cuda_error", "app.cuda_error", "app.exception"];
    let all: Vec<(Hit<'_>, Wish)> = ask.any_of(&kinds).into_iter().filter_map(|h| wish(&h).map(|w| (h, w))).collect();
    let Some((first, wish)) = all.first().copied() else { return Vec::new() };
    // A try that failed while the job works on in another way is none.
    if super::teardown::Teardown::of(ask).went_on(&first) {
        return Vec::new();
    }
    let hits: Vec<Hit<'_>> = all.into_iter().filter(|(_, w)| *w == wish).map(|(h, _)| h).collect();
    let who = capital(&ranks_text(&ranks_of(&hits)));
    let title = match wish {
        Wish::HostMemory => format!("{who}: the driver shares host memory only between GPUs with P2P, and these have none"),
        Wish::TooMany => format!("{who}: more GPUs on this host than one can map as peers"),
        Wish::Framework => format!("{who}: the framework's own all-reduce cannot open the peer's GPU memory"),
        Wish::P2p => format!("{who} could not open the GPU memory of a peer"),
    };
    let confidence = if matches!(wish, Wish::TooMany) { Confidence::Certain } else { Confidence::Likely };
    let mut finding = Finding::new(ID, Severity::Error, confidence, title);
    prove(&mut finding, &hits);
    finding.why = why(wish);
    finding.fixes = fixes(wish);
    finding.avoid = lines(&["Network settings (NCCL_IB_*, NCCL_SOCKET_IFNAME): the failed call is between GPUs of one host."]);
    finding.verify = lines(&["nvidia-smi topo -p2p r   # OK between all pairs of the job, seen from inside the container"]);
    vec![finding]
}

fn why(wish: Wish) -> String {
    match wish {
        Wish::HostMemory => {
            "From 2.24 on NCCL takes memory of the driver (cuMem) for its shared memory between processes, where containers and drivers seem to allow it. Some drivers give a process access to it only if its GPU reaches the other one by P2P, and the call fails instead of falling back."
        }
        Wish::TooMany => {
            "A GPU can map the memory of eight peers at a time; that is a limit of the driver for cards without NVSwitch. One process, or one communicator, has more GPUs here and tried to map them all."
        }
        Wish::Framework => {
            "vLLM and SGLang have an all-reduce of their own for small messages, which opens the peers' memory by CUDA IPC and does not fall back. It fails where the driver offers no P2P between the cards, in containers that see one GPU each, and where the memory cannot be exported (expandable segments). NCCL itself is not involved."
        }
        Wish::P2p => {
            "NCCL chose P2P between these GPUs, and the call that opens the peer's memory failed, so the init ends here. It was told that P2P works (by the driver, or by NCCL_P2P_LEVEL) and it does not for this pair of processes: containers with different IPC or process namespaces, different *_VISIBLE_DEVICES, a virtual machine, or memory that cannot be exported."
        }
    }
    .to_owned()
}

fn fixes(wish: Wish) -> Vec<Fix> {
    let no_p2p = fix(
        "Go over shared memory",
        "Now, to get the job going; for good where the cards have no P2P.",
        &["export NCCL_P2P_DISABLE=1"],
        "nothing",
        "bandwidth between the cards, if they have P2P at all",
        "unset NCCL_P2P_DISABLE",
    );
    match wish {
        Wish::HostMemory => vec![
            fix("Take /dev/shm instead of the driver's memory", "Always.", &["export NCCL_CUMEM_HOST_ENABLE=0"], "nothing", "none that is known", "unset NCCL_CUMEM_HOST_ENABLE"),
            fix(
                "Give the container enough of it",
                "It runs in a container.",
                &["docker run --ipc=host …   # or --shm-size=16g"],
                "nothing",
                "less isolation",
                "start it without the option",
            ),
        ],
        Wish::TooMany => vec![
            fix(
                "Let no process see more than nine GPUs, or start one process a GPU",
                "One process drives them all.",
                &["CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 PROGRAM"],
                "nothing",
                "fewer GPUs in one process",
                "unset it",
            ),
            fix(
                "Map no peers at all",
                "All GPUs are needed in one job.",
                &["export NCCL_P2P_DISABLE=1 NCCL_CUMEM_ENABLE=0"],
                "nothing",
                "bandwidth between the cards",
                "unset both",
            ),
        ],
        Wish::Framework => vec![
            fix(
                "Leave the all-reduce to NCCL",
                "vLLM or SGLang.",
                &["vllm serve … --disable-custom-all-reduce   # SGLang has the same option"],
                "nothing",
                "some latency of small messages",
                "start it without the option",
            ),
            fix(
                "Let the memory be exported",
                "PYTORCH_CUDA_ALLOC_CONF has expandable_segments:True.",
                &["unset PYTORCH_CUDA_ALLOC_CONF"],
                "nothing",
                "more fragmentation",
                "set it again",
            ),
        ],
        Wish::P2p => vec![
            no_p2p,
            fix(
                "Let the processes share the host's IPC and see the same GPUs",
                "The ranks run in containers, or each sees its own GPU only.",
                &["docker run --ipc=host --pid=host --gpus all …", "env | grep -e VISIBLE_DEVICES -e NCCL_P2P_LEVEL -e NCCL_CUMEM"],
                "nothing",
                "less isolation",
                "start it without the options",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Finding};

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn each_wish_has_its_own_switch() {
        for (text, command) in [
            ("h1:1:2 [0] transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'\n", "NCCL_CUMEM_HOST_ENABLE=0"),
            ("h1:1:2 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices\n", "NCCL_P2P_DISABLE=1"),
            ("h1:1:2 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 'invalid argument'\n", "NCCL_P2P_DISABLE=1"),
            ("RuntimeError: CUDART error: peer access is not supported between these two devices\n", "--disable-custom-all-reduce"),
            ("Failed: Cuda error /src/csrc/custom_all_reduce.cuh:455 'invalid argument'\n", "--disable-custom-all-reduce"),
            ("h1:1:1 [0] allocator.cc:79 NCCL WARN Cuda failure 711 'peer mapping resources exhausted'\n", "CUDA_VISIBLE_DEVICES"),
        ] {
            let f = found(text).unwrap_or_else(|| panic!("{text}"));
            assert!(f.fixes[0].commands[0].contains(command), "{text}: {:?}", f.fixes[0].commands);
            assert!(f.title.chars().count() <= 100, "{}", f.title);
        }
    }

    #[test]
    fn other_failed_calls_are_others() {
        for text in [
            "h1:1:2 [0] enqueue.cc:238 NCCL WARN Cuda failure 'invalid argument'\n",
            "h1:1:2 [0] /build/rccl/hipify/src/transport/p2p.cc:456 NCCL WARN HIP failure 'invalid argument'\n",
            "h1:1:2 [0] NCCL INFO Could not enable P2P between dev 1(=2000) and dev 0(=1000)\n",
        ] {
            assert!(found(text).is_none(), "{text}");
        }
    }

    #[test]
    fn only_the_limit_of_peers_admits_no_other_reading() {
        let grade = |text: &str| found(text).map(|f| f.confidence);
        assert_eq!(grade("h1:1:1 [0] allocator.cc:79 NCCL WARN Cuda failure 711 'peer mapping resources exhausted'\n"), Some(Confidence::Certain));
        assert_eq!(grade("h1:1:2 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 'invalid argument'\n"), Some(Confidence::Likely));
    }
}
