//! The decision tree of the founding causes in the languages that it is printed in.

use super::Lang;
use crate::rules::tree::{Branch, LEAVES, Leaf, NODES, Node, Probe};

/// The words around the tree.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// What logs say.
    pub logs: &'static str,
    /// A command.
    pub probe: &'static str,
    /// What a command shows.
    pub shown_by: &'static str,
    /// What follows.
    pub then: &'static str,
    /// The cause of a leaf.
    pub cause: &'static str,
    /// What mends it.
    pub mend: &'static str,
    /// End of a sentence.
    pub stop: &'static str,
}

/// The words of a language.
pub const fn words(lang: Lang) -> Words {
    match lang {
        Lang::En => Words { logs: "logs:  ", probe: "probe: ", shown_by: "shown by: ", then: "then: ", cause: "cause: ", mend: "mend:  ", stop: "." },
        Lang::Zh => Words { logs: "日志： ", probe: "检查： ", shown_by: "表现： ", then: "接着： ", cause: "原因： ", mend: "修复： ", stop: "。" },
    }
}

/// The questions and the leaves.
pub const fn tree(lang: Lang) -> (&'static [Node], &'static [Leaf]) {
    match lang {
        Lang::En => (NODES, LEAVES),
        Lang::Zh => (NODES_ZH, LEAVES_ZH),
    }
}

const NODES_ZH: &[Node] = &[
    Node {
        id: "q-cluster-or-single-host-p2p",
        question: "是多个节点通过高速网络一起工作，还是一台机器里的多块 GPU？",
        log: "一个通信器里的主机、它的 nNodes，以及不同主机的 rank 之间走 NET 的通道。",
        probes: &[
            Probe { command: "nvidia-smi topo -m", look: "矩阵里除了 GPU 的行之外，是否还有网卡的行" },
            Probe { command: "ibv_devices", look: "是否列出了设备；没有 nvidia-smi 时用它" },
        ],
        branches: &[
            Branch {
                answer: "多个节点（两台带 ConnectX-7 的 DGX Spark，或任何带 RDMA 的集群）",
                outcome: "矩阵里有网卡的行，或 ibv_devices 列出了设备，并且作业是在不止一个节点上启动的",
                next: "q-rocev2-socket-or-qp-error",
            },
            Branch {
                answer: "一台装有多块 PCIe GPU 的机器", outcome: "只有 GPU 的行，没有 RDMA 设备，所有 rank 都是在这里启动的", next: "q-p2p-nvidia-or-amd-r9700"
            },
        ],
    },
    Node {
        id: "q-rocev2-socket-or-qp-error",
        question: "两端的启动日志（NCCL_DEBUG=INFO）显示的是什么：数据走 TCP，还是走 RDMA 但队列对失败？",
        log: "`Using network X` 和 `via NET/X` 的通道行；`ibv_modify_qp failed`；以错误 12 结束的完成事件。",
        probes: &[
            Probe { command: "show_gids | grep -i roce", look: "数据网络那个设备的行：类型为 RoCE v2 且带 IPv4 地址，以及它们在每个节点上的索引" },
            Probe { command: "ip -br link", look: "数据网络的接口是否为 UP" },
        ],
        branches: &[
            Branch {
                answer: "数据走 NET/Socket（管理口、Wi-Fi 或网桥）",
                outcome: "数据网络的接口为 DOWN 或者不存在，或者它是 UP，但从没有让 NCCL 用它",
                next: "sol-connectx7-rocev2-hca-binding",
            },
            Branch {
                answer: "`ibv_modify_qp` 失败，或完成事件以错误 12 结束",
                outcome: "接口为 UP，而带 IPv4 地址的那一行，其索引与正在使用的不同，或者没有这一行，或者两端不一样",
                next: "sol-rocev2-gid-index-mtu9000",
            },
        ],
    },
    Node {
        id: "q-p2p-nvidia-or-amd-r9700",
        question: "机器里是哪些 GPU 卡住或出错？",
        log: "库自己的版本行（NCCL 或 RCCL）、卡的名字、ROCm 运行时的行。",
        probes: &[
            Probe { command: "cat /proc/cmdline", look: "里面有没有 `iommu=pt`（或 `intel_iommu=off`、`amd_iommu=off`）" },
            Probe { command: "sudo lspci -vvv | grep -i ACSCtl:", look: "`SrcValid+`：说明这个桥把 GPU 之间的传输往上送到处理器" },
        ],
        branches: &[
            Branch {
                answer: "多块 NVIDIA 卡：卡在某个集合通信里，或报告 P2P 被禁用",
                outcome: "内核命令行上没有 `iommu=pt`，或者卡上方的某个桥为 `SrcValid+`",
                next: "sol-pcie-iommu-pt-and-acs-p2p",
            },
            Branch {
                answer: "多块 Radeon 卡（R9700、RX 9070 XT）：RCCL 卡住，或报告 MEMORY_APERTURE_VIOLATION",
                outcome: "上面两项都正常或已经改好，并且这些卡是 RDNA",
                next: "sol-multi-r9700-rccl-sdma-tuning",
            },
        ],
    },
];

const LEAVES_ZH: &[Leaf] = &[
    Leaf { id: "sol-connectx7-rocev2-hca-binding", cause: "tcp-fallback", remedy: "让接口、HCA 和框架所用的地址都指向两个节点共有的同一个网络。" },
    Leaf {
        id: "sol-rocev2-gid-index-mtu9000", cause: "roce-qp-gid-mtu", remedy: "在每个节点上找出带 IPv4 地址的 RoCE v2 表项，并让两端和交换机使用同一个 MTU。"
    },
    Leaf {
        id: "sol-pcie-iommu-pt-and-acs-p2p", cause: "p2p-iommu-acs-hang", remedy: "让 IOMMU 直通（iommu=pt），并关闭卡上方各个桥的 ACS；或者不用 P2P 运行。"
    },
    Leaf { id: "sol-multi-r9700-rccl-sdma-tuning", cause: "rccl-sdma-rdna", remedy: "用着色器内核代替 SDMA 来拷贝，使用 Simple 协议，并让 IOMMU 直通。" },
];
