//! rccl-sdma-rdna in Simplified Chinese.

use crate::lang::catalogue::Table;

/// Its texts.
pub const TABLE: Table = Table {
    texts: &[
        // Titles.
        ("The copy engine (SDMA) of a Radeon card failed in a run over {gpus} GPUs", "在 {gpus} 块 GPU 的运行中，某块 Radeon 卡的拷贝引擎（SDMA）失败了"),
        (
            "RCCL {version} on gfx12: {} complete the init and stand in the first collective (LL deadlock)",
            "gfx12 上的 RCCL {version}：{0*}完成了初始化，停在第一个集合通信里（LL 死锁）",
        ),
        ("If the job stands still here: the path between the AMD GPUs is the first suspect", "如果作业就停在这里：首先怀疑 AMD GPU 之间的路径"),
        ("{} complete RCCL's init and the first collective does not end", "{0*}完成了 RCCL 的初始化，而第一个集合通信没有结束"),
        ("A GPU kernel used a bad address in a run over several Radeon cards", "在多块 Radeon 卡的运行中，某个 GPU 内核用了错误的地址"),
        // The reading.
        (
            "The kernel names the SDMA engine as the one that faulted or did not end in time; with it every copy between the {gpus} cards stands.",
            "内核指明出错或超时的是 SDMA 引擎；它一停，{gpus} 块卡之间的拷贝就全停了。",
        ),
        ("Which cards these are does not stand in the log; on other architectures look for a hardware fault first.", "日志里看不出是什么卡；如果是别的架构，先查硬件故障。"),
        ("Copies by shader kernels instead of SDMA avoid it.", "用着色器内核代替 SDMA 来拷贝可以避开它。"),
        ("All ranks print Init COMPLETE, {standing}.", "所有 rank 都打印了 Init COMPLETE，{standing*}。"),
        (
            "On RDNA 4 (gfx1200, gfx1201) RCCL 2.27 may choose the LL protocol for small messages although its kernels lack the ordering that these GPUs need: all cards run at 100 % and nothing ends. NCCL_PROTO is not Simple here. A rank that never called the collective would look the same.",
            "在 RDNA 4（gfx1200、gfx1201）上，RCCL 2.27 可能为小消息选用 LL 协议，而它的内核缺少这些 GPU 所需的内存序保证：所有卡的占用率都是 100 %，却什么也完不成。这里的 NCCL_PROTO 不是 Simple。如果某个 rank 从未调用这个集合通信，看上去也一样。",
        ),
        (
            "RCCL names no GPU model in these lines, so the reason stays open: on R9700 and RX 9070/9060 the LL protocol, else the IOMMU or P2P between the cards. `rocminfo | grep gfx` says which cards these are.",
            "RCCL 的这些行里没有 GPU 型号，所以原因还不能确定：在 R9700 和 RX 9070/9060 上是 LL 协议，否则是 IOMMU 或显卡之间的 P2P。`rocminfo | grep gfx` 可以查明是什么卡。",
        ),
        (
            "By the kernel's command line the IOMMU is on and translates, which transfers between the cards often do not survive; iommu=pt is the way out.",
            "按内核命令行，IOMMU 开着并且在做地址转换，显卡之间的传输往往过不去；解决办法是 iommu=pt。",
        ),
        (
            "The violation comes from a shader, not from the copy engine: a pointer that was never mapped, for instance a peer's memory over P2P, or a fault of the program's own kernels. If the same job runs on one card, the path between the cards is to blame.",
            "违规访问来自着色器，而不是拷贝引擎：可能是从未映射的指针，例如经 P2P 访问的对端显存，也可能是程序自己的内核有错。如果同一个作业在单卡上能跑，问题就在显卡之间的路径。",
        ),
        // Fixes.
        ("Use the Simple protocol", "使用 Simple 协议"),
        ("First on R9700, RX 9070 and 9060 with RCCL 2.27 (ROCm 7.2).", "R9700、RX 9070 和 9060 配 RCCL 2.27（ROCm 7.2）时，首先做这个。"),
        ("higher latency of small messages", "小消息的延迟会变高"),
        ("unset NCCL_PROTO after an update that brings the fix", "升级到修好的版本之后 unset NCCL_PROTO"),
        ("Take an RCCL without the fault", "换一个没有这个问题的 RCCL"),
        ("To get rid of the setting.", "不想一直带着这个设置时。"),
        ("librccl of ROCm 7.1, or a build of 2.28.3 and later", "ROCm 7.1 的 librccl，或 2.28.3 及更新的构建"),
        ("install the former package", "装回原来的软件包"),
        ("Copy without the SDMA engine", "不用 SDMA 引擎来拷贝"),
        ("The kernel log names SDMA0, SDMA1 or `ring sdma`.", "内核日志里出现 SDMA0、SDMA1 或 `ring sdma` 时。"),
        ("copies to and from the host are slower", "与主机之间的拷贝会变慢"),
        ("Prove whether P2P is to blame", "验证是不是 P2P 的问题"),
        ("After NCCL_PROTO=Simple; together with it on gfx12.", "先试过 NCCL_PROTO=Simple 之后；在 gfx12 上两者一起用。"),
        ("shared memory instead of P2P", "用共享内存代替 P2P"),
        ("unset both", "两个变量都 unset"),
        ("Let the IOMMU pass transfers through", "让 IOMMU 直通"),
        ("/proc/cmdline lacks iommu=pt and the job runs with P2P off.", "/proc/cmdline 里没有 iommu=pt，而作业关掉 P2P 就能跑时。"),
        (
            "add `amd_iommu=on iommu=pt` (Intel: `intel_iommu=on iommu=pt`) to GRUB_CMDLINE_LINUX in /etc/default/grub",
            "在 /etc/default/grub 的 GRUB_CMDLINE_LINUX 里加上 `amd_iommu=on iommu=pt`（Intel：`intel_iommu=on iommu=pt`）",
        ),
        ("devices are no longer isolated from each other", "设备之间不再相互隔离"),
        ("take the words out again", "去掉加上的内容"),
        ("Hide the processor's own GPU", "隐藏处理器自带的 GPU"),
        ("`rocminfo` lists an iGPU beside the cards.", "`rocminfo` 除了显卡还列出了一个 iGPU 时。"),
        ("the cards only, by their place in that list", "只填独立显卡，用它们在该列表里的序号"),
        // What only hides it, and checks.
        ("Raising time-outs: the engine is reset, the job does not come back.", "加大超时：引擎会被复位，而作业回不来了。"),
        ("NCCL_P2P_DISABLE=1 alone: over shared memory the same protocol deadlocks all the same.", "只设 NCCL_P2P_DISABLE=1：走共享内存时，同样的协议照样死锁。"),
        ("NCCL_ALGO=Ring: it changes the algorithm, neither the protocol nor the copy engine.", "NCCL_ALGO=Ring：它改变的是算法，而不是协议或拷贝引擎。"),
        ("iommu=pt is there", "其中有 iommu=pt"),
        ("no page fault, no ring timeout after a run", "运行一次之后没有 page fault，也没有 ring timeout"),
    ],
    phrases: &[
        ("and something in the log says that they wait", "而且日志里有迹象表明它们在等待"),
        ("the same number of collectives was called on each and none is shown to have ended", "每个 rank 调用的集合通信数量相同，却看不到有一个完成"),
        ("and the logs end there, which a sound run may do too", "日志到此为止，不过正常的运行也可能如此"),
    ],
};
