use super::address;
use crate::analysis::analyze_texts;
use crate::rules::{Confidence, Finding};

fn find(texts: &[(&str, &str)]) -> Option<Finding> {
    analyze_texts(texts).findings.into_iter().find(|f| f.id == "peer-crash")
}

fn log(rank: u32, tail: &str) -> String {
    let head = format!("node{rank}:1{rank}:1{rank} [0] NCCL INFO");
    format!(
        "{head} Bootstrap : Using eth0:192.0.2.1{rank}<0>\n{head} ncclCommInitRank comm 0x5500000{rank} rank {rank} nranks 3 cudaDev 0 nvmlDev 0 busId 17000 commId 0xabcdef12 - Init COMPLETE\n{}",
        tail.replace("HEAD", &head)
    )
}

const CLOSED: &str = "node0:10:12 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer 192.0.2.12<40012>\nHEAD comm 0x55000000 rank 0 nranks 3 cudaDev 0 busId 17000 - Abort COMPLETE\n";

#[test]
fn the_named_rank_whose_log_just_ends_died() {
    let (a, b, c) = (log(0, CLOSED), log(1, "HEAD comm 0x55000001 rank 1 nranks 3 cudaDev 0 busId 17000 - Destroy COMPLETE\n"), log(2, ""));
    let f = find(&[("rank0.log", &a), ("rank1.log", &b), ("rank2.log", &c)]).unwrap();
    assert_eq!((f.confidence, f.ranks.as_slice()), (Confidence::Certain, &[2][..]));
    assert!(f.title.contains("Rank 2") && f.title.contains("rank 0"), "{}", f.title);
}

#[test]
fn no_complaint_no_finding() {
    let (a, b, c) = (log(0, "HEAD comm 0x55000000 rank 0 nranks 3 cudaDev 0 busId 17000 - Destroy COMPLETE\n"), log(1, ""), log(2, ""));
    assert!(find(&[("rank0.log", &a), ("rank1.log", &b), ("rank2.log", &c)]).is_none());
}

#[test]
fn noise_after_the_work_is_silent() {
    let done = "# Avg bus bandwidth    : 20.1\n".to_owned();
    assert!(find(&[("job.log", &(done + &log(0, CLOSED)))]).is_none());
    let destroyed = "HEAD comm 0x55000000 rank 0 nranks 3 cudaDev 0 busId 17000 - Destroy COMPLETE\nnode0:10:12 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer 192.0.2.12<40012>\n";
    assert!(find(&[("rank0.log", &log(0, destroyed))]).is_none());
    assert!(find(&[("rank0.log", "n:1:2 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Success\n")]).is_none());
}

#[test]
fn a_lost_remote_process_without_a_name() {
    let f = find(&[("rank0.log", "[rank0]:[E722 08:55:15.7 ProcessGroupNCCL.cpp:542] [Rank 0] Collective WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=2, NumelOut=2, Timeout(ms)=60000) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.22.3\n")]).unwrap();
    assert_eq!(f.confidence, Confidence::Likely);
}

#[test]
fn who_comes_after_a_timeout_finds_the_others_gone() {
    let timeout = "[rank0]:[E724 08:34:00.9 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, Timeout(ms)=45000) ran for 45001 milliseconds before timing out.\n";
    let late = "[rank1]:[E724 08:34:25.9 ProcessGroupNCCL.cpp:542] [Rank 1] Collective WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=2, NumelOut=2, Timeout(ms)=45000) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.22.3\n";
    assert!(find(&[("rank0.log", timeout), ("rank1.log", late)]).is_none());
}

#[test]
fn peers_are_read_in_all_their_forms() {
    assert_eq!(address("192.0.2.7<40012>").as_deref(), Some("192.0.2.7"));
    assert_eq!(address("node7.example.org<48056>").as_deref(), Some("node7.example.org"));
    assert_eq!(address("2001:db8::7<1>").as_deref(), Some("2001:db8::7"));
    assert_eq!(address("<>"), None);
}

#[test]
fn a_store_that_goes_at_the_end_is_no_alarm() {
    let gone = "[rank1]:[W1016 00:45:40.2 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=102, addr=[n1]:55672, remote=[n0]:29500): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n[rank1]:[W1016 00:45:40.3 ProcessGroupNCCL.cpp:1781] [PG ID 0 PG GUID 0(default_pg) Rank 1] Failed to check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Failed to recv, got 0 bytes.\n";
    assert_eq!(find(&[("job.log", gone)]).unwrap().severity, crate::rules::Severity::Info);
    let failed = format!("{gone}  exitcode  : 1 (pid: 99)\n");
    assert_eq!(find(&[("job.log", &failed)]).unwrap().severity, crate::rules::Severity::Error);
}

#[test]
fn a_connection_that_closes_when_the_scheduler_ends_the_job_accuses_nobody() {
    let limit = "slurmstepd: error: *** STEP 482913.0 ON n0 CANCELLED AT 2026-03-14T12:00:04 DUE TO TIME LIMIT ***\n";
    let closed = "n1:40:43 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n0<51422>\n";
    assert!(find(&[("job.log", &format!("{limit}{closed}"))]).is_none());
    assert!(find(&[("job.log", &format!("{closed}{limit}"))]).is_some());
}

#[test]
fn the_kernels_process_number_names_the_rank() {
    let rank = |r: u32| {
        let host = if r < 2 { "n0" } else { "n1" };
        format!("{host}:{0}:{0} [{1}] NCCL INFO ncclCommInitRank comm 0x5{r} rank {r} nranks 4 cudaDev {1} nvmlDev {1} busId {1}1000 commId 0x7 - Init COMPLETE\n", 900 + r, r % 2)
    };
    let run = format!("{}{}{}{}n1:902:950 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n0<51422>\n", rank(0), rank(1), rank(2), rank(3));
    let killed = "[81233.6] Out of memory: Killed process 901 (python3) total-vm:9kB, anon-rss:5kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:9kB oom_score_adj:0\n";
    let f = find(&[("run.log", &run), ("dmesg.log", killed)]).unwrap();
    assert_eq!((f.ranks.as_slice(), f.confidence), (&[1][..], Confidence::Likely));
    assert!(f.title.contains("was killed for lack of host memory"), "{}", f.title);
}

#[test]
fn torchruns_report_names_the_rank_that_was_killed_and_not_those_that_it_ended() {
    let closing = |pid: u32| format!("W0314 20:03:40.1 410 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {pid} closing signal SIGTERM\n");
    let report = |pid: u32| {
        format!(
            "E0314 20:03:44.1 410 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: {pid}) of binary: /usr/bin/python\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-14_20:03:44\n  host      : node1\n  rank      : 6 (local_rank: 2)\n  exitcode  : -9 (pid: {pid})\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID {pid}\n"
        )
    };
    let f = find(&[("job.log", &(closing(412) + &report(413)))]).unwrap();
    assert_eq!((f.ranks.as_slice(), f.confidence), (&[6][..], Confidence::Likely));
    assert!(f.title.contains("Rank 6") && f.title.contains("was killed (SIGKILL)"), "{}", f.title);
    assert!(find(&[("job.log", &(closing(413) + &report(413)))]).is_none());
}

#[test]
fn the_executor_names_the_worker_that_is_gone() {
    let f = find(&[("job.log", "ERROR 10-10 10:12:10 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n")]).unwrap();
    assert_eq!(f.ranks, [1]);
}
