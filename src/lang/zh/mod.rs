//! Simplified Chinese.

mod common;
mod notes;
mod p2p_iommu_acs_hang;
mod rccl_sdma_rdna;
mod roce_qp_gid_mtu;
mod tcp_fallback;
mod titles;
mod words;

use super::catalogue::Table;

/// What all causes share.
pub const COMMON: Table = common::TABLE;

/// Titles of all causes but the founding ones.
pub const TITLES: Table = titles::TABLE;

/// Notes.
pub const NOTES: Table = notes::TABLE;

/// The words around findings.
pub const WORDS: Table = words::TABLE;

/// What the findings of a cause say.
pub const TABLES: &[(&str, Table)] = &[
    ("tcp-fallback", tcp_fallback::TABLE),
    ("roce-qp-gid-mtu", roce_qp_gid_mtu::TABLE),
    ("p2p-iommu-acs-hang", p2p_iommu_acs_hang::TABLE),
    ("rccl-sdma-rdna", rccl_sdma_rdna::TABLE),
    ("peer-crash", titles::PEER_CRASH),
    ("app-crash", titles::APP_CRASH),
    ("gdr-disabled", titles::GDR_DISABLED),
    ("gpu-error", titles::GPU_ERROR),
];

/// One line a cause.
pub const SUMMARIES: &[(&str, &str)] = &[
    ("gpu-oom", "某个 rank 的 GPU 显存耗尽；其他 rank 在等它，或者失去了它。"),
    ("gpu-error", "GPU 出了故障：Xid、ECC、非法内存访问、内核出错。NCCL 只是报信的。"),
    ("gpu-not-visible", "进程看不到 GPU，或者看不到它要的那一块。"),
    ("driver-mismatch", "GPU 驱动与库所用的 CUDA 或 ROCm 版本不匹配。"),
    ("gpu-arch-mismatch", "库在编译时没有包含这款 GPU 的代码。"),
    ("nccl-too-old", "NCCL 库比这款 GPU 还旧，不认识它。"),
    ("amd-pcie-atomics", "某块 AMD GPU 所在的插槽不支持 PCIe 原子操作，而第一个集合通信就需要它。"),
    ("amd-ipc-failed", "AMD GPU 的显存无法共享给对端进程。"),
    ("process-limit", "用户、服务或容器不能再启动线程了。"),
    ("peer-access-failed", "同一台机器上的对端 GPU 或对端进程打不开某块 GPU 的显存。"),
    ("topology-error", "提供给库的拓扑，或者库自己发现的拓扑，不能用。"),
    ("shm-too-small", "/dev/shm 太小，放不下同一主机上各 rank 的共享内存段。"),
    ("memlock-limit", "锁定内存的上限太小，RDMA 用不了。"),
    ("fd-limit", "打开文件数的上限太小，容不下这么多连接。"),
    ("duplicate-gpu", "两个 rank 用了同一块 GPU。"),
    ("version-mismatch", "各 rank 运行的 NCCL 或 RCCL 版本不同。"),
    ("env-mismatch", "某个必须一致的设置在各 rank 上不同。"),
    ("launch-misconfig", "启动方式有误：同一个 rank 被占用两次，规模对不上，或者两个作业撞到了一起。"),
    ("nvls-failure", "NVLink SHARP 或多节点 NVLink 存在但不能工作：检查 Fabric Manager 或 IMEX。"),
    ("app-crash", "程序自身先出错；NCCL 的错误是它的后果。"),
    ("net-plugin-failure", "需要的网络插件失败了。"),
    ("ib-device-missing", "想用 IB，却没有可用的 RDMA 设备。"),
    ("ib-port-error", "作业运行期间，某个 HCA 的端口断开了或发生了变化。"),
    ("rail-topology", "只有互不相连的轨（rail）之间的队列对失败。"),
    ("roce-qp-gid-mtu", "选中了 RDMA，但队列对（QP）建不起来，或者中途断掉：GID、MTU 或链路。"),
    ("ib-completion-error", "一次 RDMA 传输失败了，而且原因不是对端没有应答。"),
    ("tcp-fallback", "节点之间走 TCP 而不是 RDMA 交换数据。"),
    ("bootstrap-unreachable", "某个 rank 公布的地址，其他 rank 连不上。"),
    ("rccl-sdma-rdna", "多块 Radeon 卡在 RCCL 下卡住或出错。"),
    ("p2p-iommu-acs-hang", "同一台机器的 GPU 卡住不动，因为 IOMMU 或 ACS 挡住了它们之间直接的 P2P 传输。"),
    ("collective-mismatch", "各 rank 调用了不同的集合通信，或者其他 rank 在等的那一个，有一个 rank 始终没有调用。"),
    ("peer-crash", "某个 rank 的进程或节点死了；其他 rank 与它断开了连接。"),
    ("missing-rank", "有一个或多个 rank 始终没有来，或者比其他 rank 先停下。"),
    ("gdr-disabled", "RDMA 没有用上 GPU Direct，尽管要求过它，或者以前能用。"),
    ("slow-intra-node", "同一台机器的 GPU 通过共享内存或网络交换数据，而不是 P2P。"),
    ("fabric-split", "同一节点上，数据路径的各项设置指向了不同的链路。"),
    ("collective-timeout", "一个集合通信超时了，日志里看不出原因。"),
    ("stall", "各 rank 在等待，日志里看不出原因。"),
    ("expectation-failed", "日志显示的与事先声明的预期不符。"),
    ("workaround-left", "还留着一个权宜设置，它已经不需要，或者掩盖了什么。"),
];

/// Explanations, for the founding causes.
pub const EXPLANATIONS: &[(&str, &str)] = &[
    ("tcp-fallback", include_str!("../../rules/tcp_fallback.zh.md")),
    ("roce-qp-gid-mtu", include_str!("../../rules/roce_qp_gid_mtu.zh.md")),
    ("p2p-iommu-acs-hang", include_str!("../../rules/p2p_iommu_acs_hang.zh.md")),
    ("rccl-sdma-rdna", include_str!("../../rules/rccl_sdma_rdna.zh.md")),
];
