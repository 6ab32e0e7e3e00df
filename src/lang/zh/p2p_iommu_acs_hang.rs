//! p2p-iommu-acs-hang in Simplified Chinese.

use crate::lang::catalogue::Table;

/// Its texts.
pub const TABLE: Table = Table {
    texts: &[
        // Titles.
        ("The IOMMU blocks the transfers of {devices}: {count} faults in the kernel log", "IOMMU 挡住了 {devices*} 的传输：内核日志里有 {count} 条故障"),
        ("P2P between the GPUs delivers wrong data", "GPU 之间的 P2P 传来的数据是错的"),
        ("{} hang over P2P; the same job works with P2P off", "{0*}走 P2P 时卡住；同一个作业关掉 P2P 就正常"),
        ("If the job stands still here: P2P between ranks {} over PCIe ({via}) is the first suspect", "如果作业就停在这里：首先怀疑 rank {0} 之间经 PCIe 的 P2P（{via}）"),
        ("P2P between ranks {} over PCIe ({via}) does not deliver: all stand at {place}", "rank {0} 之间经 PCIe 的 P2P（{via}）送不到数据：全都停在{place*}"),
        ("The first collective of {} never ended; P2P between the GPUs may not deliver", "{0*}的第一个集合通信一直没有结束；GPU 之间的 P2P 可能送不到数据"),
        ("The last stage is the start of NCCL {version}: its first collective may hang over P2P", "最后一步是 NCCL {version} 的启动：它的第一个集合通信可能卡在 P2P 上"),
        // The reading.
        ("{devices} is the GPU of {}, by its bus id in NCCL's own lines.", "按 NCCL 自己打印的总线号，{devices*} 是{0*}的 GPU。"),
        ("The line names the GPU's driver, so {devices} is a GPU.", "这一行带有 GPU 驱动的名字，所以 {devices*} 是 GPU。"),
        (
            "Collectives have finished all the same, so not every transfer is lost; look at which device it is.",
            "尽管如此仍有集合通信完成，说明并非所有传输都丢了；请查一下是哪个设备。",
        ),
        (
            "Whether {devices} is a GPU of the job does not stand in the log; `lspci -s {devices}` says so.",
            "日志里看不出 {devices*} 是不是本作业的 GPU；`lspci -s {devices}` 可以查明。",
        ),
        ("The kernel reports that the IOMMU refused a transfer of {devices}.", "内核报告 IOMMU 拒绝了 {devices*} 的一次传输。"),
        (
            "A GPU whose writes to its peer are dropped waits for ever: NCCL prints no error, and every rank stands in the same collective.",
            "GPU 写往对端的数据一旦被丢弃，就会永远等下去：NCCL 不打印任何错误，所有 rank 都停在同一个集合通信里。",
        ),
        (
            "The test compared what arrived with what was sent, and it differs. Transfers between the cards are redirected or dropped on the way, by the IOMMU or by ACS; results of any job over this path are worthless.",
            "测试把收到的数据与发出的数据做了比对，两者不同。显卡之间的传输在途中被 IOMMU 或 ACS 改道或丢弃了；任何走这条路径的作业，其结果都不可信。",
        ),
        (
            "The logs hold two runs of the same size: the one over P2P ends without a finished collective, the one with P2P switched off works. So the direct path between the cards does not deliver; an IOMMU that translates or ACS on a bridge is the usual reason.",
            "日志里有两次规模相同的运行：走 P2P 的那次直到结束也没有完成一个集合通信，关掉 P2P 的那次正常。可见显卡之间的直接路径送不到数据；常见原因是 IOMMU 在做地址转换，或某个桥上开着 ACS。",
        ),
        ("The host facts name the reason: {}.", "主机的信息指出了原因：{0*}。"),
        ("{over}; {sign}.", "{over*}；{sign*}。"),
        ("By `lspci`, the cards {}.", "按 `lspci`，{0*}。"),
        ("No line shows NVLink or a finished collective.", "没有一行显示有 NVLink，或有集合通信完成。"),
        ("The IOMMU or ACS on the way between the cards is the reason.", "原因就是显卡之间路上的 IOMMU 或 ACS。"),
        (
            "An IOMMU that translates, or ACS on a PCIe bridge, is the usual reason; a rank that never called the collective looks the same. NCCL_P2P_DISABLE=1 decides: if the job then runs, it is P2P.",
            "常见原因是 IOMMU 在做地址转换，或某个 PCIe 桥上开着 ACS；如果某个 rank 从未调用这个集合通信，看上去也一样。用 NCCL_P2P_DISABLE=1 可以定论：这样能跑，问题就在 P2P。",
        ),
        (
            "{} all wait in the very first collective, so none is late and the data path between the GPUs is suspect. There is no line of NCCL, so neither the transport nor the cards are known; a crash in another process or a network between nodes would look the same. Run once with NCCL_DEBUG=INFO: `via P2P` lines without NVLink make it likely, `via NET` lines exclude it.",
            "{0*}全都等在第一个集合通信里，可见没有谁迟到，可疑的是 GPU 之间的数据路径。没有一行来自 NCCL，所以传输方式和显卡型号都不得而知；别的进程崩溃，或者节点之间的网络有问题，看上去也一样。用 NCCL_DEBUG=INFO 跑一次：有 `via P2P` 的行而没有 NVLink，则很可能就是它；有 `via NET` 的行则可以排除。",
        ),
        (
            "The line `using nccl=={version}` is printed right before ncclCommInitRank and a one-element all-reduce; what always follows it is missing.",
            "`using nccl=={version}` 这一行是在 ncclCommInitRank 和一个单元素 all-reduce 之前打印的；平时总会跟在它后面的内容没有出现。",
        ),
        ("A minute later the front process reports that its workers do not answer.", "一分钟后，前端进程报告它的 worker 没有应答。"),
        (
            "With several PCIe cards in one machine a P2P path that the IOMMU or ACS blocks stops exactly here. So does a rank that never started, or a virtual GPU layer: count the ranks that printed their first line, and run once with NCCL_DEBUG=INFO.",
            "一台机器里有多块 PCIe 卡时，被 IOMMU 或 ACS 挡住的 P2P 路径正是停在这里。某个 rank 从未启动，或者有虚拟 GPU 层，也会这样：数一数打印了第一行的 rank，并用 NCCL_DEBUG=INFO 跑一次。",
        ),
        // Fixes.
        ("Prove it without a reboot: run once over shared memory instead of P2P", "不重启就能验证：用共享内存代替 P2P 跑一次"),
        ("First, on the same job. If it then runs, the P2P path is the cause.", "首先做这个，用同一个作业。这样能跑，原因就是 P2P 路径。"),
        ("vLLM's own all-reduce uses P2P too: add --disable-custom-all-reduce to the command", "vLLM 自带的 all-reduce 也用 P2P：在命令里加上 --disable-custom-all-reduce"),
        ("about 8 to 12 % of throughput on PCIe 5 as reported; more on older links", "据报告，在 PCIe 5 上损失约 8 到 12 % 的吞吐；链路越旧损失越大"),
        ("unset NCCL_P2P_DISABLE as soon as P2P works", "P2P 修好后立即 unset NCCL_P2P_DISABLE"),
        ("Let the IOMMU pass transfers through", "让 IOMMU 直通"),
        ("The IOMMU is on and /proc/cmdline lacks iommu=pt (bare metal).", "IOMMU 开着，而 /proc/cmdline 里没有 iommu=pt 时（裸机）。"),
        ("AMD:   add `amd_iommu=on iommu=pt` to GRUB_CMDLINE_LINUX in /etc/default/grub", "AMD：  在 /etc/default/grub 的 GRUB_CMDLINE_LINUX 里加上 `amd_iommu=on iommu=pt`"),
        ("Intel: add `intel_iommu=on iommu=pt`", "Intel：加上 `intel_iommu=on iommu=pt`"),
        ("or: sudo grub2-mkconfig -o /boot/grub2/grub.cfg", "或者：sudo grub2-mkconfig -o /boot/grub2/grub.cfg"),
        (
            "this host has `{word}`: add `iommu=pt` beside it to GRUB_CMDLINE_LINUX in /etc/default/grub",
            "这台主机已有 `{word}`：在 /etc/default/grub 的 GRUB_CMDLINE_LINUX 里，在它旁边加上 `iommu=pt`",
        ),
        ("none for the GPUs; devices are no longer isolated from each other", "对 GPU 没有影响；设备之间不再相互隔离"),
        ("take the words out again, update grub, reboot", "去掉加上的内容，更新 grub，重启"),
        ("Switch ACS off on the bridges above the GPUs", "关闭 GPU 上方各个桥的 ACS"),
        (
            "`lspci -vvv` shows `ACSCtl: SrcValid+ … ReqRedir+` on a bridge above a GPU. In the BIOS it lasts, with setpci it is lost at reboot.",
            "`lspci -vvv` 显示某块 GPU 上方的桥为 `ACSCtl: SrcValid+ … ReqRedir+` 时。在 BIOS 里关闭是持久的，用 setpci 则重启后失效。",
        ),
        (
            "devices below one bridge are no longer isolated; do not do it on a host that passes them to virtual machines",
            "同一个桥下面的设备不再相互隔离；如果这台主机把设备直通给虚拟机，就不要这样做",
        ),
        ("reboot, or switch it on again in the BIOS", "重启，或在 BIOS 里重新打开"),
        ("Take a driver that does not offer P2P on these cards, or one that has it right", "换一个在这些卡上不提供 P2P 的驱动，或者一个处理正确的驱动"),
        (
            "GeForce and workstation cards whose driver claims P2P (early or patched drivers). NCCL then chooses shared memory by itself.",
            "GeForce 和工作站卡的驱动声称支持 P2P 时（早期驱动或打过补丁的驱动）。换掉后 NCCL 会自己选择共享内存。",
        ),
        ("shared memory instead of P2P", "用共享内存代替 P2P"),
        ("install the former driver", "装回原来的驱动"),
        ("Raising time-outs: the transfer never arrives, the job only waits longer.", "加大超时：数据永远到不了，作业只会等得更久。"),
        ("Keeping NCCL_P2P_DISABLE=1 for ever: it hides the fault and costs speed.", "一直留着 NCCL_P2P_DISABLE=1：它掩盖了故障，还损失速度。"),
        (
            "In a virtual machine ACS cannot be switched off from inside: ask for ATS on the host, or leave P2P off.",
            "在虚拟机里无法从内部关闭 ACS：请在主机上启用 ATS，或者不用 P2P。",
        ),
        // Checks.
        ("iommu=pt is there", "其中有 iommu=pt"),
        ("SrcValid- … ReqRedir- on the bridges above the GPUs", "GPU 上方各个桥应为 SrcValid- … ReqRedir-"),
        ("OK for every pair; it can say OK and still hang, so run a P2P copy test too", "每一对都应为 OK；显示 OK 也仍可能卡住，所以还要跑一次 P2P 拷贝测试"),
        ("the bridges between these GPUs", "这些 GPU 之间的桥"),
        ("SrcValid- … ReqRedir- on each that has it", "有 ACS 的每个桥都应为 SrcValid- … ReqRedir-"),
        ("no new fault after a run", "运行一次之后没有新的故障"),
    ],
    phrases: &[
        ("a device", "某个设备"),
        ("share the PCIe switch at {}", "这些卡共用 {0} 处的 PCIe 交换芯片"),
        ("share no PCIe switch, so what one sends the other passes the processor", "这些卡没有共用的 PCIe 交换芯片，彼此之间的数据要经过处理器"),
        ("ACS redirects requests on a PCIe bridge (SrcValid+, ReqRedir+)", "某个 PCIe 桥上的 ACS 把请求改道了（SrcValid+，ReqRedir+）"),
        (", and ", "，并且"),
        ("the IOMMU is on and translates (no iommu=pt)", "IOMMU 开着，并且在做地址转换（没有 iommu=pt）"),
        ("{} of one host{named} stand at {place}, all local pairs over {via}", "同一台主机{named*}的{0*}停在{place*}，本机各对之间都走 {via}"),
        (" ({n})", "（{n}）"),
        ("Init COMPLETE", "Init COMPLETE"),
        ("connecting their channels", "连接 channel 的阶段"),
        ("torch's watchdog says on every rank that not even the first collective ended", "torch 的看门狗在每个 rank 上都报告，连第一个集合通信都没有结束"),
        ("no log has grown for {seconds} s", "所有日志都已 {seconds} s 没有新内容"),
        (
            "the framework says that its workers do not answer, and the line that follows NCCL's start is missing",
            "框架报告它的 worker 没有应答，而且 NCCL 启动之后应有的那一行没有出现",
        ),
        ("the framework's next line, which comes after NCCL's warm-up all-reduce, is missing", "框架在 NCCL 的预热 all-reduce 之后应打印的下一行没有出现"),
        ("nccl-tests printed the head of its table and no row", "nccl-tests 打印了表头，却没有一行结果"),
        ("no rank printed `Connected all rings`, and all stop at the same place", "没有一个 rank 打印 `Connected all rings`，而且全都停在同一处"),
        ("the logs end there, which a sound run may do too", "日志到此为止，不过正常的运行也可能如此"),
    ],
};
