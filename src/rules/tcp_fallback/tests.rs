use crate::analysis::analyze_texts;
use crate::rules::{Confidence, Finding, Severity, Verdict};

/// Two ranks on two nodes; `net` is what NET prints on each, `via` the network of the channels.
fn job(nets: [&str; 2], via: [&str; 2]) -> Vec<(String, String)> {
    (0..2)
        .map(|r| {
            let (host, other) = (["alpha", "beta"][r], 1 - r);
            let head = |text: &str| format!("{host}:{}:{} [0] NCCL INFO {text}\n", 100 + r, 100 + r);
            let mut log = head(&format!("Bootstrap: Using eth0:10.1.0.{}<0>", r + 1));
            log += &head("NCCL version 2.27.7+cuda12.9");
            for line in nets[r].lines() {
                log += &head(line);
            }
            log += &head(&format!("Using network {}", via[r]));
            log += &head(&format!("ncclCommInitRank comm 0x5500{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xabc1 - Init START"));
            log += &head(&format!("comm 0x5500{r} rank {r} nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"));
            log += &head(&format!("Channel 00/0 : {other}[0] -> {r}[0] [receive] via NET/{}/0", via[r]));
            log += &head(&format!("Channel 00/0 : {r}[0] -> {other}[0] [send] via NET/{}/0", via[r]));
            log += &head(&format!("ncclCommInitRank comm 0x5500{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xabc1 - Init COMPLETE"));
            (format!("rank{r}.log"), log)
        })
        .collect()
}

fn found(logs: &[(String, String)]) -> Option<Finding> {
    let texts: Vec<(&str, &str)> = logs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    analyze_texts(&texts).findings.into_iter().find(|f| f.id == "tcp-fallback")
}

fn both(net: &str, via: &str) -> Option<Finding> {
    found(&job([net, net], [via, via]))
}

const SOCKET: &str = "NET/Socket : Using [0]eth0:10.1.0.9<0> [1]enp1s0f0np0:192.168.9.9<0>";

#[test]
fn rdma_is_healthy() {
    let logs = job(["NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.1<0>"; 2], ["IB"; 2]);
    let texts: Vec<(&str, &str)> = logs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let analysis = analyze_texts(&texts);
    assert!(analysis.findings.iter().all(|f| f.severity == Severity::Info), "{:?}", analysis.findings);
    assert_eq!(analysis.verdict, Verdict::Healthy);
}

#[test]
fn socket_on_one_node_is_nothing() {
    let one = "alpha:7:7 [0] NCCL INFO NET/IB : No device found.\nalpha:7:7 [0] NCCL INFO Using network Socket\nalpha:7:7 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init COMPLETE\n";
    assert!(found(&[("rank0.log".to_owned(), one.to_owned())]).is_none());
}

#[test]
fn an_interface_in_the_filter_is_named() {
    let f = both(&format!("NCCL_IB_HCA set to enp1s0f0np0\nNET/IB : No device found.\n{SOCKET}"), "Socket").unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Certain));
    assert!(f.title.contains("NCCL_IB_HCA=enp1s0f0np0") && f.title.contains("eth0"), "{}", f.title);
    assert!(f.title.chars().count() <= 100, "{}", f.title);
    assert!(f.why.contains("names a network interface"), "{}", f.why);
    assert!(f.fixes[0].commands.iter().any(|c| c.contains("netdev enp1s0f0np0")), "{:?}", f.fixes[0]);
    assert_eq!(f.path.last(), Some(&"sol-connectx7-rocev2-hca-binding"));
    assert_eq!(f.hosts, ["alpha", "beta"]);
}

#[test]
fn a_filter_in_the_wrong_case_is_named() {
    let logs = job([&format!("NCCL_IB_HCA set to MLX5_0\nNET/IB : No device found.\n{SOCKET}"), "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.2<0>"], ["Socket", "IB"]);
    let f = found(&logs).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Certain));
    assert!(f.title.contains("rank 0 (alpha)"), "{}", f.title);
    assert!(f.why.contains("case-sensitive"), "{}", f.why);
    assert_eq!(f.ranks, [0]);
}

#[test]
fn grades_follow_the_evidence() {
    let grade = |net: &str| both(net, "Socket").map(|f| (f.severity, f.confidence)).unwrap();
    assert_eq!(grade(&format!("NET/IB : No device found.\n{SOCKET}")), (Severity::Warning, Confidence::Possible));
    // From 2.28 on NET/IB says this on every machine without an HCA.
    assert_eq!(grade(&format!("NET/IB : No device found.\nFailed to initialize NET plugin IB\n{SOCKET}")), (Severity::Warning, Confidence::Possible));
    assert_eq!(grade("NET/IB : No device found.\nNET/Socket : Using [0]wlan0:192.168.4.2<0>"), (Severity::Warning, Confidence::Likely));
    assert_eq!(grade("NET/IB : No device found.\nNET/Socket : Using [0]eth0:169.254.3.1<0>"), (Severity::Warning, Confidence::Likely));
    assert_eq!(grade("NET/IB : No device found.\nNET/Socket : Using [0]ib0:10.9.0.2<0>"), (Severity::Warning, Confidence::Certain));
    assert_eq!(grade(&format!("Failed to open libibverbs.so[.1]\n{SOCKET}")), (Severity::Warning, Confidence::Certain));
    assert_eq!(grade(&format!("NCCL_IB_DISABLE set by environment to 1.\n{SOCKET}")), (Severity::Warning, Confidence::Likely));
    assert_eq!(grade(&format!("NCCL_NET set by environment to Socket\n{SOCKET}")), (Severity::Info, Confidence::Certain));
    assert_eq!(grade("NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.1<0>"), (Severity::Info, Confidence::Certain));
}

#[test]
fn a_channel_to_a_rank_without_a_log_leaves_the_node() {
    let log = "gamma:8:9 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[0] [receive] via NET/Socket/0\ngamma:8:9 [0] NCCL INFO Channel 00/0 : 3[0] -> 0[0] [send] via NET/Socket/0\n";
    let f = found(&[("worker.log".to_owned(), log.to_owned())]).unwrap();
    assert_eq!(f.confidence, Confidence::Possible);
    let shm_off = format!("gamma:8:9 [0] NCCL INFO NCCL_SHM_DISABLE set by environment to 1.\n{log}");
    assert!(found(&[("worker.log".to_owned(), shm_off)]).is_none());
}

#[test]
fn only_the_list_of_interfaces_is_left() {
    let line = |host: &str, n: u32| format!("{host}:{n}:{n} [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.{n}<0>\n");
    let f = found(&[("a.log".to_owned(), line("alpha", 1)), ("b.log".to_owned(), line("beta", 2))]).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Likely));
}

#[test]
fn a_network_that_carried_nothing_is_no_slow_path() {
    let rank = |host: &str, rank: u32, tail: &str| {
        format!(
            "{host}:7:7 [0] NCCL INFO Bootstrap: Using eth0:192.0.2.{rank}<0>\n{host}:7:8 [0] NCCL INFO Using network Socket\n{host}:7:8 [0] NCCL INFO ncclCommInitRank comm 0x1{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x5a - Init START\n{tail}"
        )
    };
    let failed = "beta:7:8 [0] misc/socket.cc:592 NCCL WARN socketStartConnect: connect to 192.0.2.0<4> failed : No route to host\n";
    let list = analyze_texts(&[("rank0.log", &rank("alpha", 0, "")), ("rank1.log", &rank("beta", 1, failed))]).findings;
    assert_eq!(list.iter().map(|f| f.id).collect::<Vec<_>>(), ["bootstrap-unreachable"]);
}

#[test]
fn a_slow_network_killed_nobody() {
    let run = job([&format!("Failed to open libibverbs.so[.1]\n{SOCKET}"), &format!("Failed to open libibverbs.so[.1]\n{SOCKET}")], ["Socket", "Socket"]);
    let mut logs: Vec<(&str, &str)> = run.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    logs.push(("end.log", "beta:40:43 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer alpha<51422>\nsrun: error: alpha: task 0: Killed\n"));
    let a = crate::analysis::analyze_texts(&logs);
    assert_eq!(a.findings.first().map(|f| f.id), Some("peer-crash"));
}
