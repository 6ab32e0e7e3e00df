use super::ID;
use crate::analysis::analyze_texts;
use crate::rules::{Analysis, Confidence, Finding, Severity, Verdict};

/// A rank of two on one host, up to Init COMPLETE.
fn rank(r: u32, via: &str, chunk: u32) -> String {
    let (peer, bus) = (1 - r, if r == 0 { "41000" } else { "61000" });
    let p = format!("ws1:40{r}:40{r} [{r}] NCCL INFO");
    format!(
        "{p} Bootstrap : Using eth0:192.168.7.5<0>\n{p} Using network Socket\n\
         {p} ncclCommInitRank comm 0x5{r}a rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {bus} commId 0xfeed1 - Init START\n\
         {p} comm 0x5{r}a rank {r} nRanks 2 nNodes 1 localRanks 2 localRank {r} MNNVL 0\n\
         {p} Channel 00/02 : 0 1\n{p} Channel 01/02 : 0 1\n{p} P2P Chunksize set to {chunk}\n\
         {p} Channel 00/0 : {r}[{r}] -> {peer}[{peer}] via {via}\n{p} Channel 01/0 : {r}[{r}] -> {peer}[{peer}] via {via}\n"
    )
}

fn complete(r: u32) -> String {
    let (p, bus) = (format!("ws1:40{r}:40{r} [{r}] NCCL INFO"), if r == 0 { "41000" } else { "61000" });
    format!(
        "{p} Connected all rings\n{p} Connected all trees\n{p} ncclCommInitRank comm 0x5{r}a rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {bus} commId 0xfeed1 - Init COMPLETE\n"
    )
}

fn both(via: &str, chunk: u32, tail: &dyn Fn(u32) -> String) -> Vec<(&'static str, String)> {
    vec![("rank0.log", rank(0, via, chunk) + &tail(0)), ("rank1.log", rank(1, via, chunk) + &tail(1))]
}

fn analyse(texts: &[(&str, String)]) -> Analysis {
    analyze_texts(&texts.iter().map(|(n, t)| (*n, t.as_str())).collect::<Vec<_>>())
}

fn found(texts: &[(&str, String)]) -> Option<Finding> {
    analyse(texts).findings.into_iter().find(|f| f.id == ID)
}

fn watchdog(r: u32, seq: u32, completed: i32) -> String {
    format!(
        "[rank{r}]:[E101 10:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n\
         [rank{r}]:[E101 10:00:00.000000100 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Exception (either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {seq}, last completed NCCL work: {completed}.\n"
    )
}

#[test]
fn a_fault_of_the_jobs_gpu_is_certain() {
    let mut logs = both("P2P/CUMEM", 131_072, &complete);
    logs.push(("dmesg.log", "[ 4703.1] AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x000e address=0x3f80001b100 flags=0x0030]\n".to_owned()));
    let f = found(&logs).expect("fault");
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Certain));
    assert_eq!(f.ranks, [0]);
    assert_eq!(f.path.last(), Some(&"sol-pcie-iommu-pt-and-acs-p2p"));
    logs[2].1 = logs[2].1.replace("41:00.0", "05:00.0");
    assert_ne!(found(&logs).map(|f| f.severity), Some(Severity::Error), "a fault of another device");
}

#[test]
fn a_bare_fault_is_likely_and_a_named_gpu_certain() {
    let bare = "[ 4703.1] AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x000e address=0x3f80001b100 flags=0x0030]\n".to_owned();
    assert_eq!(found(&[("dmesg.log", bare)]).expect("bare").confidence, Confidence::Likely);
    let named = "[ 4703.1] nvidia 0000:0a:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0x3f80001b100 flags=0x0020]\n".to_owned();
    assert_eq!(found(&[("dmesg.log", named)]).expect("named").confidence, Confidence::Certain);
    let intel = "[ 4703.1] DMAR: [DMA Write] Request device [41:00.0] fault addr 3f80001b000 [fault reason 05] PTE Write access is not set\n".to_owned();
    assert_eq!(found(&[("dmesg.log", intel)]).expect("intel").confidence, Confidence::Likely);
}

#[test]
fn the_first_collective_dead_on_all_ranks_is_likely() {
    let logs = both("P2P/IPC", 131_072, &|r| complete(r) + &watchdog(r, 1, -1));
    let a = analyse(&logs);
    let f = a.findings.iter().find(|f| f.id == ID).expect("hang");
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Likely));
    assert_eq!(f.ranks, [0, 1]);
    let timeout = a.findings.iter().find(|f| f.id == "collective-timeout");
    assert!(timeout.is_none_or(|t| t.caused_by == Some(ID)));
}

#[test]
fn host_facts_make_it_certain() {
    let mut logs = both("P2P/IPC", 131_072, &|r| complete(r) + &watchdog(r, 1, -1));
    logs.push(("host.txt", "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n".to_owned()));
    let f = found(&logs).expect("acs");
    assert_eq!(f.confidence, Confidence::Certain);
    assert!(f.evidence.iter().any(|e| e.text.contains("ACSCtl")));
}

#[test]
fn the_bridges_between_the_gpus_are_named_where_acs_is_not_told() {
    let tree = |lines: &str| {
        let mut logs = both("P2P/IPC", 131_072, &|r| complete(r) + &watchdog(r, 1, -1));
        logs.push(("host.txt", lines.to_owned()));
        found(&logs).expect("hang")
    };
    let f = tree(
        "-[0000:40]-+-01.1-[41]----00.0  NVIDIA Corporation GB202\n           +-02.1-[51]----00.0  Samsung Electronics Co Ltd NVMe SSD Controller\n           \\-03.1-[61]----00.0  NVIDIA Corporation GB202\n",
    );
    assert_eq!(f.confidence, Confidence::Likely);
    assert!(f.why.contains("share no PCIe switch"), "{}", f.why);
    let commands: Vec<&String> = f.fixes.iter().flat_map(|x| &x.commands).chain(&f.verify).filter(|c| c.contains("40:01.1 40:03.1")).collect();
    assert_eq!(commands.len(), 2, "{:?}", f.fixes);
    let f = tree("-[0000:00]-+-01.0-[40-70]----00.0-[41-70]--+-00.0-[41]----00.0\n                                           \\-01.0-[61]----00.0\n");
    assert!(f.why.contains("share the PCIe switch at 40:00.0"), "{}", f.why);
    // The tree of another machine, or a part of it, names nothing.
    let f = tree("-[0000:40]-+-01.1-[41]----00.0  NVIDIA Corporation GB202\n");
    assert!(!f.why.contains("switch") && f.fixes.iter().any(|x| x.commands.iter().any(|c| c.contains("'*:*:0604'"))));
}

#[test]
fn a_late_timeout_or_another_path_is_not_this() {
    for logs in [
        both("P2P/IPC", 131_072, &|r| complete(r) + &watchdog(r, 1580, 1579)),
        both("SHM/direct/direct", 131_072, &|r| complete(r) + &watchdog(r, 1, -1)),
        both("P2P/IPC/read", 131_072, &|r| complete(r) + &watchdog(r, 1, -1)),
        both("P2P/CUMEM", 524_288, &|r| complete(r) + &watchdog(r, 1, -1)),
    ] {
        assert!(found(&logs).is_none());
    }
}

#[test]
fn a_log_that_ends_at_complete_gives_info_at_most() {
    let a = analyse(&both("P2P/IPC", 131_072, &complete));
    assert_eq!(a.findings.iter().find(|f| f.id == ID).map(|f| f.severity), Some(Severity::Info));
    assert_eq!(a.verdict, Verdict::Healthy);
    let destroyed =
        both("P2P/IPC", 131_072, &|r| complete(r) + &format!("ws1:40{r}:40{r} [{r}] NCCL INFO comm 0x5{r}a rank {r} nranks 2 cudaDev {r} busId 41000 - Destroy COMPLETE\n"));
    assert!(found(&destroyed).is_none());
}

#[test]
fn ranks_that_end_while_connecting_are_possible_and_a_cut_is_not() {
    let f = found(&both("P2P/IPC", 131_072, &|_| String::new())).expect("connecting");
    assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Possible));
    let cut: Vec<(&str, String)> =
        both("P2P/IPC", 131_072, &|_| String::new()).into_iter().map(|(n, t)| (n, t.lines().filter(|l| !l.contains("Channel 01/0")).flat_map(|l| [l, "\n"]).collect())).collect();
    assert!(found(&cut).is_none(), "the second channel was not printed yet");
}

#[test]
fn the_frameworks_tail_is_possible_until_it_goes_on() {
    let tail = "INFO 07-12 19:04:18 [pynccl.py:70] vLLM is using nccl==2.27.3\n".to_owned();
    let f = found(&[("vllm.log", tail.clone())]).expect("tail");
    assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Possible));
    let on = tail + "INFO 07-12 19:04:20 [parallel_state.py:1065] rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0\n";
    assert!(found(&[("vllm.log", on)]).is_none());
}

#[test]
fn of_two_runs_the_one_without_p2p_works() {
    let mut logs = both("P2P/CUMEM", 131_072, &complete);
    for r in 0..2u32 {
        let text = rank(r, "SHM/direct/direct", 131_072)
            + &complete(r)
            + &format!("ws1:40{r}:40{r} [{r}] NCCL INFO comm 0x5{r}a rank {r} nranks 2 cudaDev {r} busId 41000 - Destroy COMPLETE\n");
        let text = text.replace("Channel 00/0 :", "Channel 00 :").replace("Channel 01/0 :", "Channel 01 :").replace(":40", ":90").replace("0xfeed1", "0xbeef2");
        let set = format!("ws1:90{r}:90{r} [{r}] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n");
        logs.push((if r == 0 { "good0.log" } else { "good1.log" }, set + &text));
    }
    let f = found(&logs).expect("two runs");
    assert_eq!(f.confidence, Confidence::Certain);
}

#[test]
fn the_executors_queue_is_no_proof_that_nccl_started() {
    let queue =
        "(EngineCore_DP0 pid=212) INFO 03-15 20:03:40 [shm_broadcast.py:289] vLLM message queue communication handle: Handle(local_reader_ranks=[0, 1], remote_addr_ipv6=False)\n";
    let next = "INFO 03-15 20:03:49 [pynccl.py:70] vLLM is using nccl==2.27.3\n";
    let found = |text: &str| analyze_texts(&[("vllm.log", text)]).findings.iter().any(|f| f.id == "p2p-iommu-acs-hang");
    assert!(found(&format!("{queue}{next}")));
    let workers = "INFO 03-15 20:03:52 [shm_broadcast.py:289] vLLM message queue communication handle: Handle(local_reader_ranks=[1], remote_addr_ipv6=False)\n";
    assert!(!found(&format!("{queue}{next}{workers}")));
}

#[test]
fn ranks_that_the_framework_places_on_several_nodes_do_not_wait_for_p2p() {
    let tail = "[2026-07-12 19:04:18 TP0] sglang is using nccl==2.27.3\n";
    assert!(found(&[("sglang.log", tail.to_owned())]).is_some());
    for line in [
        "[2026-07-12 19:04:17 TP0] CustomAllreduce is disabled because this process group spans across nodes.\n",
        "DEBUG 07-12 19:04:17 [parallel_state.py:1689] Detected 2 nodes in the distributed environment\n",
    ] {
        assert!(found(&[("sglang.log", format!("{line}{tail}"))]).is_none(), "{line}");
    }
}

/// One process that holds both cards, as 2.8 prints it, up to the head of the test's table.
fn one_process() -> String {
    let line = |tid: u32, dev: u32, text: &str| format!("desk:70:{tid} [{dev}] NCCL INFO {text}\n");
    let rank = |r: u32| {
        let (tid, peer, bus) = (81 + r, 1 - r, if r == 0 { "41000" } else { "61000" });
        (0..2).map(|c| line(tid, r, &format!("Channel 0{c} : {r}[41000] -> {peer}[61000] via P2P/direct pointer"))).collect::<String>()
            + &line(tid, r, &format!("comm 0x7f{r}a rank {r} nranks 2 cudaDev {r} busId {bus} - Init COMPLETE"))
    };
    line(70, 0, "Bootstrap : Using eth0:192.168.7.5<0>")
        + &line(70, 0, "Using network Socket")
        + "NCCL version 2.8.4+cuda11.1\n"
        + &line(82, 1, "Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0")
        + &line(81, 0, "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1")
        + &rank(0)
        + &rank(1)
        + "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
}

#[test]
fn a_test_without_a_first_row_makes_p2p_suspect() {
    let a = analyse(&[("test.log", one_process())]);
    let f = a.findings.iter().find(|f| f.id == ID).expect("p2p");
    assert_eq!((f.severity, f.confidence, a.verdict), (Severity::Warning, Confidence::Possible, Verdict::Stalled));
    assert_eq!(a.job.comms.len(), 1);
    let row = "           8             2     float     sum    28.11    0.00    0.00  0e+00    27.90    0.00    0.00  0e+00\n";
    assert!(found(&[("test.log", one_process() + row)]).is_none());
}
