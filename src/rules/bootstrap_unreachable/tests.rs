use crate::analysis::analyze_texts;
use crate::rules::{Confidence, Finding, Severity};

fn find(texts: &[(&str, &str)]) -> Option<Finding> {
    analyze_texts(texts).findings.into_iter().find(|f| f.id == "bootstrap-unreachable")
}

fn start(host: &str, rank: u32, iface: &str, ip: &str) -> String {
    let head = |t: &str| format!("{host}:5{rank}:5{rank} [0] NCCL INFO {t}\n");
    head(&format!("Bootstrap: Using {iface}:{ip}<0>"))
        + &head("NCCL version 2.27.7+cuda12.9")
        + &head("Using network IB")
        + &head(&format!("ncclCommInitRank comm 0x77{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init START"))
}

fn retry(n: u32, ip: &str) -> String {
    format!("beta:51:51 [0] NCCL INFO socketPollConnect: connect to {ip}<41000> returned Connection refused, retrying ({n}/34) after sleep for {n}00 msec\n")
}

#[test]
fn a_filter_without_match_is_named() {
    let log = "alpha:9:9 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to mlx5_0\nalpha:9:9 [0] bootstrap.cc:115 NCCL WARN Bootstrap : no socket interface found\n";
    let f = find(&[("rank0.log", log)]).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Certain));
    assert!(f.title.contains("NCCL_SOCKET_IFNAME=mlx5_0"), "{}", f.title);
    assert!(f.why.contains("belongs into NCCL_IB_HCA"), "{}", f.why);
}

#[test]
fn docker0_refuses() {
    let (a, mut b) = (start("alpha", 0, "docker0", "172.17.0.1"), start("beta", 1, "docker0", "172.17.0.1"));
    for n in 1..=20 {
        b += &retry(n, "172.17.0.1");
    }
    let f = find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Likely));
    assert!(f.title.starts_with("Rank 1 cannot connect"), "{}", f.title);
    assert!(f.why.contains("bridge"), "{}", f.why);
}

#[test]
fn a_few_retries_at_the_start_are_normal() {
    let done = |host: &str, r: u32| {
        format!(
            "{host}:5{r}:5{r} [0] NCCL INFO Bootstrap timings total 0.3 (create 0.0, send 0.1, recv 0.1, ring 0.1, delay 0.0)\n{host}:5{r}:5{r} [0] NCCL INFO ncclCommInitRank comm 0x77{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init COMPLETE\n"
        )
    };
    let a = start("alpha", 0, "eth0", "10.2.0.1") + &done("alpha", 0);
    let b = start("beta", 1, "eth0", "10.2.0.2") + &retry(1, "10.2.0.1") + &retry(2, "10.2.0.1") + &done("beta", 1);
    assert!(find(&[("rank0.log", &a), ("rank1.log", &b)]).is_none());
}

#[test]
fn no_route_is_the_path() {
    let log = "gamma:3:3 [1] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.3.0.7<40152> returned 113(No route to host) errno 115(Operation now in progress)\n";
    let f = find(&[("node.log", log)]).unwrap();
    assert_eq!(f.confidence, Confidence::Certain);
    assert!(f.title.contains("10.3.0.7: no route to host"), "{}", f.title);
}

#[test]
fn silence_of_all_ranks_is_only_possible() {
    let (a, b) = (start("alpha", 0, "eth0", "10.2.0.1"), start("beta", 1, "eth0", "10.2.0.2"));
    let f = find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Possible));
    // One rank without a log: it may just be missing.
    assert!(find(&[("rank0.log", &a)]).is_none());
}

#[test]
fn a_refusal_after_the_start_is_the_peers_end() {
    let a = start("alpha", 0, "eth0", "10.2.0.1")
        + "alpha:50:50 [0] NCCL INFO ncclCommInitRank comm 0x770 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init COMPLETE\n"
        + "alpha:50:50 [0] misc/socket.cc:578 NCCL WARN socketPollConnect: connect to 10.2.0.2<38121> returned Connection refused, exceeded error retry count after 35 attempts\n";
    assert!(find(&[("rank0.log", &a)]).is_none());
}

#[test]
fn a_connection_that_this_host_does_not_let_out() {
    let a = start("alpha", 0, "eth0", "10.2.0.1");
    for (error, words) in [("Permission denied", "not permitted"), ("Cannot assign requested address", "address not usable here")] {
        let b = start("beta", 1, "eth0", "10.3.0.1") + &format!("beta:51:51 [0] misc/socket.cc:592 NCCL WARN socketStartConnect: connect to 10.2.0.1<38121> failed : {error}\n");
        let f = find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap();
        assert!(f.title.ends_with(words), "{}", f.title);
    }
}

#[test]
fn a_store_that_nobody_reaches() {
    let log = "[rank1]: torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.5.0.1, 29500).\n";
    let f = find(&[("node1.log", log)]).unwrap();
    assert_eq!(f.confidence, Confidence::Likely);
    assert_eq!(f.title, "Rank 1 cannot reach the store at 10.5.0.1:29500");
}

#[test]
fn an_interface_that_gloo_does_not_find() {
    let f = find(&[("node1.log", "RuntimeError: Unable to find address for: enp9s0\n")]).unwrap();
    assert_eq!(f.confidence, Confidence::Certain);
}

fn met(iface: &str, ip: &str, list: &str) -> String {
    let head = |t: &str| format!("beta:51:51 [0] NCCL INFO {t}\n");
    head(&format!("Bootstrap: Using {iface}:{ip}<0>"))
        + &head("NCCL version 2.27.7+cuda12.9")
        + &head(&format!("NET/Socket : Using {list}"))
        + &head("Using network Socket")
        + &head("ncclCommInitRank comm 0x771 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init START")
        + &head("Bootstrap timings total 0.3 (create 0.0, send 0.1, recv 0.1, ring 0.1, delay 0.0)")
}

#[test]
fn data_goes_to_an_address_of_another_interface() {
    let mut b = met("enp9s0", "10.2.0.2", "[0]enp9s0:10.2.0.2<0> [1]pod-id-link0:169.254.170.23<0>");
    for n in 1..=13 {
        b += &retry(n, "169.254.170.23");
    }
    let f = find(&[("rank1.log", &b)]).unwrap();
    assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Likely));
    assert_eq!(f.title, "Rank 1 opens no data connection to 169.254.170.23 (pod-id-link0): refused");
    assert!(f.fixes[0].commands[0].starts_with("export NCCL_SOCKET_IFNAME==enp9s0 "), "{:?}", f.fixes[0].commands);
    // The address over which the ranks met does answer: there the peer has ended.
    let same = met("enp9s0", "10.2.0.2", "[0]enp9s0:10.2.0.2<0>") + &retry(13, "10.2.0.2");
    assert!(find(&[("rank1.log", &same)]).is_none());
}

#[test]
fn a_link_local_address_names_its_interface() {
    let b = met("eth0", "10.2.0.2", "[0]eth0:10.2.0.2<0> [1]eth1:fe80::2%eth1<0>")
        + "beta:51:60 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to fe80::1%eth1<41533> failed : Connection timed out\n";
    let f = find(&[("rank1.log", &b)]).unwrap();
    assert_eq!(f.confidence, Confidence::Certain);
    assert!(f.title.contains("(eth1)"), "{}", f.title);
}

#[test]
fn a_connection_that_was_refused_shows_at_its_first_use() {
    let log = "ncclInternalError: Internal check failed.\nLast error:\nNet : Call to recv from 10.5.0.18<38309> failed : Connection refused\n";
    let f = find(&[("worker.log", log)]).unwrap();
    assert_eq!((f.confidence, f.title.as_str()), (Confidence::Possible, "A rank cannot connect to 10.5.0.18: refused"));
    assert!(find(&[("worker.log", &log.replace("Connection refused", "Connection reset by peer"))]).is_none());
}
