use crate::analysis::analyze_texts;
use crate::rules::{Analysis, Confidence, Finding, Severity};

const ID: &str = "roce-qp-gid-mtu";

fn found(logs: &[(&str, &str)]) -> Option<Finding> {
    analyze_texts(logs).findings.into_iter().find(|f| f.id == ID)
}

/// The start of a rank that reached Init COMPLETE over one RoCE device.
fn start(host: &str, rank: u32, layer: &str) -> String {
    let ip = rank + 1;
    format!(
        "{host}:40:40 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.{ip}<0>\n\
         {host}:40:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/{layer} [RO]; OOB eth0:10.0.0.{ip}<0>\n\
         {host}:40:40 [0] NCCL INFO Using network IB\n\
         {host}:40:40 [0] NCCL INFO ncclCommInitRank comm 0x7f{rank}0 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x5a - Init START\n\
         {host}:40:40 [0] NCCL INFO comm 0x7f{rank}0 rank {rank} nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n\
         {host}:40:40 [0] NCCL INFO ncclCommInitRank comm 0x7f{rank}0 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x5a - Init COMPLETE\n"
    )
}

fn abort(host: &str, rank: u32) -> String {
    format!("{host}:40:40 [0] NCCL INFO comm 0x7f{rank}0 rank {rank} nranks 2 cudaDev 0 busId 17000 - Abort COMPLETE\n")
}

fn modify(host: &str, error: &str, index: i32, local: &str, remote: &str) -> String {
    format!(
        "{host}:40:41 [0] misc/ibvwrap.cc:301 NCCL WARN Call to ibv_modify_qp failed with {error}, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index {index}, local GID {local}, remote GID {remote}\n"
    )
}

fn completion(host: &str, peer: &str, gids: &str) -> String {
    format!(
        "{host}:40:42 [0] transport/net_ib.cc:2458 NCCL WARN NET/IB: Got completion from peer {peer}<5001> with status=12 opcode=0 len=0 vendor err 129 (Recv){gids} hca mlx5_0\n"
    )
}

const MAPPED: &str = " localGid ::ffff:192.0.2.1 remoteGids::ffff:192.0.2.2";

#[test]
fn gids_of_different_kinds_are_certain() {
    let text = start("hosta", 0, "RoCE") + &modify("hosta", "101 Network is unreachable", 3, "::ffff:192.0.2.1", "fe80::1:2ff:fe03:4");
    let finding = found(&[("rank0.log", &text)]).expect("mismatch");
    assert_eq!((finding.severity, finding.confidence), (Severity::Error, Confidence::Certain));
    assert_eq!(finding.path.last(), Some(&"sol-rocev2-gid-index-mtu9000"));
    assert!(finding.title.contains("rank 0, mlx5_0"), "{}", finding.title);
}

#[test]
fn queue_pair_lines_of_both_ends_show_the_kind() {
    let line = |host: &str, gid: &str| format!("{host}:40:41 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 302 mtu 5 GID 3 ({gid}) fifoRkey=0x1900 fifoLkey=0x1900\n");
    let a = start("hosta", 0, "RoCE")
        + &line("hosta", "0/10200C0FFFF0000")
        + "hosta:40:41 [0] misc/ibvwrap.cc:206 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n";
    let b = start("hostb", 1, "RoCE") + &line("hostb", "80FE/100AAFEFFF6CEBA");
    let finding = found(&[("rank0.log", &a), ("rank1.log", &b)]).expect("mismatch");
    assert_eq!(finding.confidence, Confidence::Certain);
    assert!(finding.why.contains("192.0.2.1"), "{}", finding.why);
}

#[test]
fn an_empty_entry_and_an_index_beyond_the_table() {
    let pin = "hosta:40:41 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 7.\n";
    let empty = start("hosta", 0, "RoCE") + pin + &modify("hosta", "61 No data available", 7, "::", "::ffff:192.0.2.2");
    let finding = found(&[("rank0.log", &empty)]).expect("empty");
    assert_eq!(finding.confidence, Confidence::Certain);
    assert!(finding.title.contains("GID index 7 is empty"), "{}", finding.title);
    let beyond = start("hosta", 0, "RoCE") + pin + "hosta:40:41 [0] misc/ibvwrap.cc:156 NCCL WARN Call to ibv_query_gid failed with error Unknown error -1 errno -1\n";
    let finding = found(&[("rank0.log", &beyond)]).expect("beyond");
    assert_eq!(finding.confidence, Confidence::Certain);
    assert_eq!(finding.fixes[0].commands[0].split_whitespace().next(), Some("unset"));
}

#[test]
fn every_error_number_has_its_reading() {
    for (error, word) in [
        ("110 Connection timed out", "resolved"),
        ("22 Invalid argument", "attributes"),
        ("19 No such device", "network device"),
        ("61 No data available", "empty entry"),
        ("101 Network is unreachable", "no route"),
        ("113 No route to host", "nobody answers"),
    ] {
        let text = start("hosta", 0, "RoCE") + &modify("hosta", error, 3, "::ffff:192.0.2.1", "::ffff:192.0.2.2");
        let finding = found(&[("rank0.log", &text)]).expect(error);
        assert_eq!(finding.confidence, Confidence::Likely, "{error}");
        assert!(finding.why.contains(word), "{error}: {}", finding.why);
    }
}

#[test]
fn mtus_that_differ_between_the_ends() {
    let line =
        |host: &str, mtu: i32, gid: &str| format!("{host}:40:41 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 302 mtu {mtu} GID 3 ({gid}) fifoRkey=0x1900 fifoLkey=0x1900\n");
    let a = start("hosta", 0, "RoCE") + &line("hosta", 5, "0/10200C0FFFF0000") + &completion("hosta", "10.0.0.2", MAPPED) + &abort("hosta", 0);
    let b = start("hostb", 1, "RoCE") + &line("hostb", 3, "0/20200C0FFFF0000") + &abort("hostb", 1);
    let finding = found(&[("rank0.log", &a), ("rank1.log", &b)]).expect("mtu");
    assert_eq!(finding.confidence, Confidence::Certain);
    assert!(finding.title.contains("4096 on hosta") && finding.title.contains("1024 on hostb"), "{}", finding.title);
}

#[test]
fn no_answer_is_likely_and_names_the_peer() {
    let a = start("hosta", 0, "RoCE") + &completion("hosta", "10.0.0.2", MAPPED) + &abort("hosta", 0);
    let b = start("hostb", 1, "RoCE") + &abort("hostb", 1);
    let finding = found(&[("rank0.log", &a), ("rank1.log", &b)]).expect("no answer");
    assert_eq!(finding.confidence, Confidence::Likely);
    assert!(finding.why.contains("hostb"), "{}", finding.why);
    assert!(found(&[("a.log", "worker: transport retry counter exceeded\n")]).is_some());
}

#[test]
fn a_peer_whose_log_just_ends_makes_it_doubtful() {
    let a = start("hosta", 0, "RoCE") + &completion("hosta", "10.0.0.2", MAPPED) + &abort("hosta", 0);
    let b = start("hostb", 1, "RoCE");
    let finding = found(&[("rank0.log", &a), ("rank1.log", &b)]).expect("no answer");
    assert_eq!(finding.confidence, Confidence::Possible);
    assert!(finding.why.contains("rank 1 on hostb just ends"), "{}", finding.why);
}

#[test]
fn infiniband_has_no_gid_index() {
    let a = start("hosta", 0, "IB") + &completion("hosta", "10.0.0.2", "") + &abort("hosta", 0);
    let finding = found(&[("rank0.log", &a)]).expect("no answer");
    let text = format!("{} {:?} {:?}", finding.why, finding.fixes, finding.verify);
    assert!(finding.why.contains("subnet manager"), "{}", finding.why);
    assert!(!text.contains("GID_INDEX") && !text.contains("show_gids"), "{text}");
}

#[test]
fn a_fix_never_names_an_index() {
    let pin = "hosta:40:41 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\n";
    let text = start("hosta", 0, "RoCE") + pin + &modify("hosta", "22 Invalid argument", 3, "::ffff:192.0.2.1", "::ffff:192.0.2.2");
    let finding = found(&[("rank0.log", &text)]).expect("refused");
    for command in finding.fixes.iter().flat_map(|f| &f.commands).chain(&finding.verify) {
        let number = command.split("GID_INDEX=").nth(1).and_then(|rest| rest.chars().next());
        assert!(number.is_none_or(|c| !c.is_ascii_digit()), "{command}");
    }
}

#[test]
fn retries_that_end_well_and_missing_memory_are_not_this() {
    let retry = "hosta:40:41 [0] NCCL INFO Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:192.0.2.1, remote GID ::ffff:192.0.2.2, retrying 2/35 after 200 msec of sleep\n";
    let connected = "hosta:40:40 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 0\n";
    let text = start("hosta", 0, "RoCE") + retry;
    assert!(found(&[("rank0.log", &text)]).is_some());
    assert!(found(&[("rank0.log", &(text + connected))]).is_none());
    let memory = start("hosta", 0, "RoCE") + &modify("hosta", "12 Cannot allocate memory", 3, "::ffff:192.0.2.1", "::ffff:192.0.2.2");
    assert!(found(&[("rank0.log", &memory)]).is_none());
}

#[test]
fn a_healthy_job_with_link_local_gids_is_silent() {
    let line = |host: &str| format!("{host}:40:41 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 302 mtu 3 GID 0 (80FE/100AAFEFFF6CEBA) fifoRkey=0x1900 fifoLkey=0x1900\n");
    let (a, b) = (start("hosta", 0, "RoCE") + &line("hosta"), start("hostb", 1, "RoCE") + &line("hostb"));
    let analysis: Analysis = analyze_texts(&[("rank0.log", &a), ("rank1.log", &b)]);
    assert!(analysis.findings.iter().all(|f| f.severity == Severity::Info), "{:?}", analysis.findings);
}

#[test]
fn devices_of_both_link_types_are_named() {
    let using = "hosta:40:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";
    let text = format!(
        "{using}hosta:40:42 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5001> with error 12, opcode 0, len 0, vendor err 129 (Recv)\n"
    );
    let finding = found(&[("rank0.log", &text)]).expect("mixed");
    assert!(finding.why.contains("mlx5_0") && finding.why.contains("mlx5_1"), "{}", finding.why);
    assert_eq!(finding.fixes[0].commands, vec!["export NCCL_IB_HCA==mlx5_0".to_owned()]);
}

#[test]
fn texts_of_all_versions_and_plugins() {
    for text in [
        "hosta:40:42 [0] transport/net_ib.cc:816 NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 32633, vendor err 129",
        "hosta:40:42 [0] transport/net_ib.cc:816 NCCL WARN NET/IB : Got completion from peer hostb<5001> with error 12, opcode 0, le",
        "hosta:40:42 [0] transport/net_ib.cc:816 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5001> with status=12 opcode=0 len=0 vendor err 129 (Send)",
        "hosta:40:42 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.2<5001> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129  localGid ::ffff:192.0.2.1 remoteGids::ffff:192.0.2.2 hca mlx5_0",
        "NET/IBX:Got completion from peer 10.0.0.2<5001> with status=12 opcode=0 len=0 vendor err 129 (Send)",
        "Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
        "Call to ibv_modify_qp failed with error Connection timed out",
    ] {
        assert!(found(&[("rank0.log", &format!("{text}\n"))]).is_some(), "{text}");
    }
}

#[test]
fn silence_that_one_side_reports_may_be_a_dead_peer() {
    let a = start("alpha", 0, "RoCE") + &completion("alpha", "10.0.0.2", MAPPED);
    let b = start("beta", 1, "RoCE") + &completion("beta", "10.0.0.1", MAPPED);
    assert_eq!(found(&[("rank0.log", &a)]).unwrap().confidence, Confidence::Possible);
    assert_eq!(found(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap().confidence, Confidence::Likely);
}

#[test]
fn to_speak_of_a_failed_call_is_no_failed_call() {
    let words = "Is it like the issues where ibv_modify_qp failed?\n";
    assert_eq!(found(&[("job.log", words)]).unwrap().confidence, Confidence::Possible);
    let head = "hosta:40:41 [0] NCCL INFO";
    let tcp = format!("{head} Using network Socket\n{head} ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init COMPLETE\n{words}");
    assert!(found(&[("job.log", &tcp)]).is_none());
}
