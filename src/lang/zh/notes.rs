//! Notes, and where a walk down the decision tree ends, in Simplified Chinese.

use crate::lang::catalogue::Table;

/// Them.
pub const TABLE: Table = Table {
    texts: &[
        ("{ranks}{nodes}{net}{over}{done}.", "{ranks*}。"),
        (
            "To get a log that can be diagnosed, run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH NCCL_DEBUG_FILE=nccl.%h.%p.log PYTHONUNBUFFERED=1 on every rank and give all files.",
            "要得到一份可供诊断的日志，请在每个 rank 上用 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH NCCL_DEBUG_FILE=nccl.%h.%p.log PYTHONUNBUFFERED=1 运行，并给出所有文件。",
        ),
        ("No line of NCCL, RCCL, a framework or the kernel was recognised.", "没有认出任何一行来自 NCCL、RCCL、框架或内核。"),
        ("The logs hold {} attempts; the findings are those of the last one.", "日志里有 {0} 次尝试；结论针对最后一次。"),
        ("{} of {n} ranks have a log; there is none of rank {}.", "{n} 个 rank 中有 {0} 个有日志；缺 rank {1}。"),
        ("{dropped} repeated facts were counted but not kept.", "{dropped} 条重复的事实只计了数，没有保留。"),
        (
            "NCCL does not flush its standard output: the last lines of a killed or hanging rank may be missing, so the stage shown is a lower bound. PYTHONUNBUFFERED=1 or NCCL_DEBUG_FILE=nccl.%h.%p.log avoids that.",
            "NCCL 不会刷新标准输出：被杀掉或卡住的 rank 可能缺最后几行，所以显示的阶段只是下限。PYTHONUNBUFFERED=1 或 NCCL_DEBUG_FILE=nccl.%h.%p.log 可以避免。",
        ),
        (
            "Queue pair, GID and GPU Direct lines are not in these logs; NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET shows them.",
            "这些日志里没有队列对（QP）、GID 和 GPU Direct 的行；设置 NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET 就会打印。",
        ),
        ("Facts of {} were read: {}{more}.", "读到了{0*}的信息：{1*}。"),
        (
            "Nothing tells which host of the job {} is, so these facts count only where it does not matter. Name the files after the hosts, or collect them with `ncclog collect`.",
            "看不出 {0*} 是作业里的哪台主机，所以这些信息只用在与此无关的地方。请用主机名给文件命名，或者用 `ncclog collect` 收集。",
        ),
        ("{dropped} facts of hosts were beyond the bounds and not kept.", "{dropped} 条主机信息超出了限度，没有保留。"),
        (
            "On {} no RDMA port is active ({}); a job over several nodes would go over TCP from there.",
            "{0*} 上没有一个 RDMA 端口处于 active（{1}）；跨节点的作业从那里出去会走 TCP。",
        ),
        ("The active RDMA ports have different MTUs ({}).", "处于 active 的 RDMA 端口 MTU 不同（{0}）。"),
        ("Facts of hosts alone prove no cause: give the NCCL log of the job beside them.", "只有主机信息证明不了任何原因：请把作业的 NCCL 日志一并给出。"),
        ("The decision tree stops at {}; {} decides, and --tree says what each outcome means.", "决策树停在 {0}；{1*} 可以定论，--tree 会说明每种结果的含义。"),
        // Where a walk down the tree ends.
        (
            "No line shows how many nodes take part: a communicator's hosts, its nNodes or a channel over NET would.",
            "没有一行显示有多少个节点参与：communicator 的主机、它的 nNodes，或者走 NET 的 channel 可以说明。",
        ),
        ("{} explains these logs, and nothing in them points to {leaves}.", "{0} 可以解释这些日志，其中没有什么指向 {leaves*}。"),
        ("The job works as far as the logs show; nothing points to {leaves}.", "就日志所见，作业正常；没有什么指向 {leaves*}。"),
        (
            "No line names the network that the data takes; NCCL_DEBUG=INFO on every rank prints it.",
            "没有一行写明数据走的是哪个网络；在每个 rank 上设置 NCCL_DEBUG=INFO 就会打印。",
        ),
        (
            "Nothing in the logs decides it: no collective is shown to have finished, and no line shows that one fails.",
            "日志无法定论：看不到有集合通信完成，也没有一行显示有集合通信失败。",
        ),
    ],
    phrases: &[
        ("one host", "一台主机"),
        ("The job", "作业"),
        ("1 rank", "1 个 rank"),
        ("{n} ranks", "{n} 个 rank"),
        (" on 1 node", "，1 个节点"),
        (" on {n} nodes", "，{n} 个节点"),
        (", network {}", "，网络为 {0}"),
        (", connected over {}", "，经由 {0*}"),
        ("the network", "网络"),
        (", Init COMPLETE on {complete}", "，其中 {complete} 个到达 Init COMPLETE"),
        ("{} hosts", " {0} 台主机"),
        (" and {} more", "和另外 {0} 台"),
        (" (by its prompt)", "（据命令行提示符）"),
        (" (by the prefix of its lines)", "（据各行的前缀）"),
        (" (by the name or content of its file)", "（据文件名或内容）"),
        (" (the only host)", "（唯一的主机）"),
        (" (by its addresses or devices)", "（据地址或设备）"),
        (" or ", " 或 "),
        (" and ", " 和 "),
    ],
};
