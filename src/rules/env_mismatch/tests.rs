use crate::analysis::analyze_texts;
use crate::rules::{Confidence, Finding};

fn find(texts: &[(&str, &str)]) -> Option<Finding> {
    analyze_texts(texts).findings.into_iter().find(|f| f.id == "env-mismatch")
}

fn rank(host: &str, rank: u32, lines: &[&str]) -> String {
    let head = |t: &str| format!("{host}:9{rank}:9{rank} [0] NCCL INFO {t}\n");
    let mut log = head("NCCL version 2.27.7+cuda12.9");
    log += &head("Using network IB");
    log += &head(&format!("ncclCommInitRank comm 0x9{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xcafe - Init START"));
    for line in lines {
        if line.contains(" NCCL WARN ") {
            log += &format!("{host}:9{rank}:9{rank} [0] {line}\n");
        } else {
            log += &head(line);
        }
    }
    log
}

fn complete(r: u32) -> String {
    format!("ncclCommInitRank comm 0x9{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xcafe - Init COMPLETE")
}

#[test]
fn channels_on_one_rank_only() {
    let a = rank("alpha", 0, &["bootstrap.cc:212 NCCL WARN Message truncated : received 4096 bytes instead of 1024"]);
    let b = rank("beta", 1, &["NCCL_MIN_NCHANNELS set by environment to 8."]);
    let f = find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap();
    assert_eq!(f.confidence, Confidence::Certain);
    assert_eq!(f.title, "NCCL_MIN_NCHANNELS=8 on rank 1 only");
    let f = find(&[("rank0.log", &a)]).unwrap();
    assert_eq!(f.confidence, Confidence::Likely);
}

#[test]
fn another_network_at_the_peer() {
    let f = find(&[("a.log", "alpha:3:4 [0] misc/socket.cc:502 NCCL WARN socketFinalizeAccept: wrong type 4 != 3\n")]).unwrap();
    assert_eq!((f.confidence, f.title.as_str()), (Confidence::Likely, "This end uses NET/Socket, its peer NET/IB"));
}

#[test]
fn a_difference_in_a_good_run_is_nothing() {
    let (ca, cb) = (complete(0), complete(1));
    let a = rank("alpha", 0, &[&ca]);
    let b = rank("beta", 1, &["NCCL_BUFFSIZE set by environment to 1048576.", &cb]);
    assert!(find(&[("rank0.log", &a), ("rank1.log", &b)]).is_none());
    let b = b + "beta:91:91 [0] NCCL INFO comm 0x91 rank 1 nranks 2 cudaDev 0 busId 1000 - Abort COMPLETE\n";
    assert_eq!(find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap().confidence, Confidence::Likely);
}

#[test]
fn names_of_hcas_may_differ() {
    let a = rank("alpha", 0, &["NCCL_IB_HCA set to mlx5_0", "bootstrap.cc:1 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.2<1>"]);
    let b = rank("beta", 1, &["NCCL_IB_HCA set to mlx5_3"]);
    assert!(find(&[("rank0.log", &a), ("rank1.log", &b)]).is_none());
}

#[test]
fn p2p_differs_between_nodes_without_harm() {
    let a = rank("alpha", 0, &["shmutils.cc:1 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.2<1>"]);
    let b = rank("beta", 1, &["NCCL_P2P_DISABLE set by environment to 1."]);
    assert!(find(&[("rank0.log", &a), ("rank1.log", &b)]).is_none());
}

#[test]
fn two_rdma_networks_in_one_communicator() {
    let closed = "socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer 192.0.2.1<7>";
    let (a, b) = (rank("alpha", 0, &[]).replace("network IB", "network IBext_v8"), rank("beta", 1, &[closed]));
    let f = find(&[("rank0.log", &a), ("rank1.log", &b)]).unwrap();
    assert_eq!((f.confidence, f.title.as_str()), (Confidence::Likely, "beta uses the network IB, alpha uses IBext_v8"));
    let same = rank("alpha", 0, &[]);
    assert!(find(&[("rank0.log", &same), ("rank1.log", &b)]).is_none());
}

#[test]
fn a_plugin_on_one_node() {
    let a = "alpha:1:1 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so\n";
    let b = "beta:2:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\n";
    assert!(find(&[("a.log", a), ("b.log", b)]).is_some());
    assert!(find(&[("a.log", a)]).is_none());
}
