//! The decision tree of the founding causes, as data: three questions, four leaves. Ids are part of the output.

mod walk;

pub use walk::{Decision, End, Walk, decide, note, topology, walk};

use serde::Serialize;

/// A question with what decides it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Stable id.
    pub id: &'static str,
    /// The question.
    pub question: &'static str,
    /// How logs answer it.
    pub log: &'static str,
    /// Read-only commands that answer it where the logs do not.
    pub probes: &'static [Probe],
    /// The answers.
    pub branches: &'static [Branch],
}

/// A read-only command.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What to run.
    pub command: &'static str,
    /// What to look at in its output.
    pub look: &'static str,
}

/// An answer.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// The answer in words.
    pub answer: &'static str,
    /// What a probe shows in this case.
    pub outcome: &'static str,
    /// Id of the question or leaf that follows.
    pub next: &'static str,
}

/// An end of the tree.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Leaf {
    /// Stable id.
    pub id: &'static str,
    /// The cause that it is.
    pub cause: &'static str,
    /// What mends it, in one line.
    pub remedy: &'static str,
}

/// Where every walk begins.
pub const ROOT: &str = "q-cluster-or-single-host-p2p";

/// The questions.
pub const NODES: &[Node] = &[
    Node {
        id: ROOT,
        question: "Do several nodes over a fast fabric take part, or do several GPUs share one machine?",
        log: "The hosts of a communicator, its nNodes, and channels over NET between ranks of different hosts.",
        probes: &[
            Probe { command: "nvidia-smi topo -m", look: "whether the matrix has rows for NICs beside those of the GPUs" },
            Probe { command: "ibv_devices", look: "whether it lists a device; where nvidia-smi is missing" },
        ],
        branches: &[
            Branch {
                answer: "several nodes (two DGX Sparks with ConnectX-7, any cluster with RDMA)",
                outcome: "the matrix has NIC rows or ibv_devices lists a device, and the job was started on more than one node",
                next: "q-rocev2-socket-or-qp-error",
            },
            Branch { answer: "one machine with several PCIe GPUs", outcome: "only GPU rows, no RDMA device, and all ranks were started here", next: "q-p2p-nvidia-or-amd-r9700" },
        ],
    },
    Node {
        id: "q-rocev2-socket-or-qp-error",
        question: "What do the start-up logs of both ends (NCCL_DEBUG=INFO) show: data over TCP, or RDMA whose queue pairs fail?",
        log: "`Using network X` and `via NET/X` channel lines; `ibv_modify_qp failed`; completions with error 12.",
        probes: &[
            Probe { command: "show_gids | grep -i roce", look: "the rows of the fabric's device: type RoCE v2 with an IPv4 address, and their index on each node" },
            Probe { command: "ip -br link", look: "whether the fabric's interface is UP" },
        ],
        branches: &[
            Branch {
                answer: "data goes over NET/Socket (a management port, Wi-Fi or a bridge)",
                outcome: "the fabric's interface is DOWN or absent, or it is UP and NCCL was never pointed to it",
                next: "sol-connectx7-rocev2-hca-binding",
            },
            Branch {
                answer: "`ibv_modify_qp` fails, or completions end with error 12",
                outcome: "the interface is UP, and the row with the IPv4 address has another index than the one in use, is missing, or differs between the ends",
                next: "sol-rocev2-gid-index-mtu9000",
            },
        ],
    },
    Node {
        id: "q-p2p-nvidia-or-amd-r9700",
        question: "Which GPUs of the machine hang or fault?",
        log: "The library's own version line (NCCL or RCCL), names of the cards, lines of ROCm's runtime.",
        probes: &[
            Probe { command: "cat /proc/cmdline", look: "whether `iommu=pt` (or `intel_iommu=off`, `amd_iommu=off`) stands there" },
            Probe { command: "sudo lspci -vvv | grep -i ACSCtl:", look: "`SrcValid+`: that bridge sends the GPUs' transfers up to the processor" },
        ],
        branches: &[
            Branch {
                answer: "several NVIDIA cards: stuck in a collective, or P2P reported as disabled",
                outcome: "no `iommu=pt` on the kernel's command line, or a bridge above the cards with `SrcValid+`",
                next: "sol-pcie-iommu-pt-and-acs-p2p",
            },
            Branch {
                answer: "several Radeon cards (R9700, RX 9070 XT): RCCL hangs or reports MEMORY_APERTURE_VIOLATION",
                outcome: "the same two readings are sound or already mended, and the cards are RDNA",
                next: "sol-multi-r9700-rccl-sdma-tuning",
            },
        ],
    },
];

/// The leaves.
pub const LEAVES: &[Leaf] = &[
    Leaf {
        id: "sol-connectx7-rocev2-hca-binding",
        cause: "tcp-fallback",
        remedy: "Point the interface, the HCA and the frameworks' addresses to the one fabric that both nodes share.",
    },
    Leaf {
        id: "sol-rocev2-gid-index-mtu9000",
        cause: "roce-qp-gid-mtu",
        remedy: "Find the RoCE v2 entry with the IPv4 address on each node, and give both ends and the switch one MTU.",
    },
    Leaf {
        id: "sol-pcie-iommu-pt-and-acs-p2p",
        cause: "p2p-iommu-acs-hang",
        remedy: "Let the IOMMU pass through (iommu=pt) and switch ACS off above the cards, or run without P2P.",
    },
    Leaf {
        id: "sol-multi-r9700-rccl-sdma-tuning",
        cause: "rccl-sdma-rdna",
        remedy: "Copy with shader kernels instead of SDMA, use the Simple protocol, and let the IOMMU pass through.",
    },
];

/// A question by its id.
pub fn node(id: &str) -> Option<&'static Node> {
    NODES.iter().find(|n| n.id == id)
}

/// A leaf by its id.
pub fn leaf(id: &str) -> Option<&'static Leaf> {
    LEAVES.iter().find(|l| l.id == id)
}

/// The leaf of a cause.
pub fn leaf_of(cause: &str) -> Option<&'static Leaf> {
    LEAVES.iter().find(|l| l.cause == cause)
}

/// Questions with the answers that lead to a leaf, from the root on.
pub fn path_to(leaf: &str) -> Vec<(&'static Node, &'static Branch)> {
    let mut path = Vec::new();
    let mut target = leaf;
    // Every step goes one question up; a tree of this many questions is never deeper.
    for _ in NODES {
        let Some(step) = NODES.iter().find_map(|n| Some((n, n.branches.iter().find(|b| b.next == target)?))) else { break };
        path.push(step);
        target = step.0.id;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cause;

    #[test]
    fn every_branch_leads_somewhere_and_every_leaf_is_a_cause() {
        for branch in NODES.iter().flat_map(|n| n.branches) {
            assert!(node(branch.next).is_some() || leaf(branch.next).is_some(), "{}", branch.next);
        }
        for leaf in LEAVES {
            assert!(cause(leaf.cause).is_some(), "{}", leaf.cause);
            let path = path_to(leaf.id);
            assert_eq!(path.len(), 2, "{}", leaf.id);
            assert_eq!(path[0].0.id, ROOT);
        }
        assert!(path_to("nowhere").is_empty());
    }

    #[test]
    fn every_question_has_a_probe_that_changes_nothing() {
        const READS: [&str; 6] = ["nvidia-smi topo", "ibv_devices", "show_gids", "ip -br", "cat ", "sudo lspci"];
        for probe in NODES.iter().flat_map(|n| n.probes) {
            assert!(READS.iter().any(|r| probe.command.starts_with(r)), "{}", probe.command);
        }
        assert!(NODES.iter().all(|n| !n.probes.is_empty() && n.branches.len() == 2));
    }
}
