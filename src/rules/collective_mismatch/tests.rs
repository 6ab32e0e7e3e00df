use crate::analysis::analyze_texts;
use crate::rules::Confidence;

/// A rank's log: Init COMPLETE, the given calls, and its end.
fn log(rank: u32, calls: &[(&str, u64, u8)], end: &str) -> String {
    let head = format!("node{rank}:1{rank}:1{rank} [0] NCCL INFO");
    let comm = format!("0x5500000{rank}");
    let mut text = format!("{head} ncclCommInitRank comm {comm} rank {rank} nranks 3 cudaDev 0 nvmlDev 0 busId 17000 commId 0xabcdef12 - Init COMPLETE\n");
    for (i, (name, count, datatype)) in calls.iter().enumerate() {
        text.push_str(&format!(
            "{head} {name}: opCount {i:x} sendbuff 0x7f0000 recvbuff 0x7f8000 count {count} datatype {datatype} op 0 root 0 comm {comm} [nranks=3] stream 0x55\n"
        ));
    }
    if !end.is_empty() {
        text.push_str(&format!("{head} comm {comm} rank {rank} nranks 3 cudaDev 0 busId 17000 - {end} COMPLETE\n"));
    }
    text
}

fn find(logs: &[String]) -> Option<(Confidence, Vec<u32>, String)> {
    let names = ["rank0.log", "rank1.log", "rank2.log"];
    let texts: Vec<(&str, &str)> = names.iter().copied().zip(logs.iter().map(String::as_str)).collect();
    let a = analyze_texts(&texts);
    a.findings.into_iter().find(|f| f.id == "collective-mismatch").map(|f| (f.confidence, f.ranks, f.why))
}

const A: (&str, u64, u8) = ("AllReduce", 1024, 7);

#[test]
fn another_count_on_one_rank_is_named() {
    let odd = ("AllReduce", 512, 7);
    let (confidence, ranks, why) = find(&[log(0, &[A, A, A], "Destroy"), log(1, &[A, odd, A], "Destroy"), log(2, &[A, A, A], "Destroy")]).unwrap();
    assert_eq!((confidence, ranks), (Confidence::Certain, vec![1]));
    assert!(why.contains("call 2") && why.contains("512"), "{why}");
}

#[test]
fn another_operation_on_one_rank_is_named() {
    let odd = ("AllGather", 1024, 7);
    let (confidence, ranks, _) = find(&[log(0, &[A, A], "Abort"), log(1, &[A, A], "Abort"), log(2, &[A, odd], "Abort")]).unwrap();
    assert_eq!((confidence, ranks), (Confidence::Certain, vec![2]));
}

#[test]
fn a_rank_that_left_early_is_named_and_a_dead_one_is_not() {
    let (confidence, ranks, _) = find(&[log(0, &[A, A], "Abort"), log(1, &[A], "Destroy"), log(2, &[A, A], "Abort")]).unwrap();
    assert_eq!((confidence, ranks), (Confidence::Likely, vec![1]));
    assert_eq!(find(&[log(0, &[A, A], "Abort"), log(1, &[A], ""), log(2, &[A, A], "Abort")]), None);
}

#[test]
fn equal_calls_and_pairs_of_send_and_recv_are_sound() {
    let send = ("Send", 7, 7);
    let recv = ("Recv", 7, 7);
    assert_eq!(find(&[log(0, &[A, send, A], "Destroy"), log(1, &[A, recv, A], "Destroy"), log(2, &[A, A], "Destroy")]), None);
}

#[test]
fn one_rank_alone_in_a_collective_by_the_watchdogs() {
    let idle = |r: u32| {
        format!(
            "[rank{r}]:[E703 21:51:54.1 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from  rank 2 and we will try our best to dump the debug info. Last enqueued NCCL work: 56, last completed NCCL work: 56.This is most likely caused by incorrect usages of collectives\n"
        )
    };
    let a = analyze_texts(&[("server.log", &format!("{}{}", idle(0), idle(1)))]);
    let f = a.findings.iter().find(|f| f.id == "collective-mismatch").unwrap();
    assert_eq!(f.ranks, [2]);
}

#[test]
fn skew_between_ranks_is_no_mismatch() {
    let status = |r: u32, n: u32| {
        format!(
            "[rank{r}]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:1664] [PG 1 Rank {r}] Exception (either an error or timeout) detected by watchdog at work: 50, last enqueued NCCL work: {n}, last completed NCCL work: 49.\n"
        )
    };
    let a = analyze_texts(&[("job.log", &format!("{}{}", status(0, 52), status(1, 57)))]);
    assert!(a.findings.iter().all(|f| f.id != "collective-mismatch"));
}

#[test]
fn who_merely_stops_earlier_is_counted() {
    let a = [log(0, &many(500), "Abort"), log(1, &many(400), ""), log(2, &many(500), "Abort")];
    let texts: Vec<(&str, &str)> = ["rank0.log", "rank1.log", "rank2.log"].into_iter().zip(a.iter().map(String::as_str)).collect();
    let a = analyze_texts(&texts);
    assert!(a.notes.iter().any(|n| n.contains("rank 1 issued 400") && n.contains("ranks 0,2 issued 500")), "{:?}", a.notes);
}

#[test]
fn a_message_without_its_partner_is_told() {
    let to = |rank: u32, name: &'static str, peer: u32| {
        log(rank, &[A, (name, 7, 7), (name, 7, 7)], "").replace("op 0 root 0 comm", "op 0 root PEER comm").replacen("root PEER", "root 0", 1).replace("PEER", &peer.to_string())
    };
    let late = log(1, &[A, ("Recv", 7, 7)], "");
    let a = analyze_texts(&[("rank0.log", &to(0, "Send", 1)), ("rank1.log", &late), ("rank2.log", &log(2, &[A], ""))]);
    assert!(a.notes.iter().any(|n| n.starts_with("Rank 0 sent 2 messages to rank 1, which issued 1 Recv")), "{:?}", a.notes);
}

/// Calls whose sizes follow no short period.
fn many(n: u64) -> Vec<(&'static str, u64, u8)> {
    (0..n).map(|i| ("AllReduce", 1 + i * i % 1009, 7)).collect()
}

#[test]
fn a_difference_older_than_the_kept_calls_is_read_again() {
    let mut odd = many(3000);
    odd[1234].1 = 5000;
    let logs = [log(0, &many(3000), "Abort"), log(1, &odd, "Abort"), log(2, &many(3000), "Abort")];
    let texts: Vec<(&str, &str)> = ["rank0.log", "rank1.log", "rank2.log"].into_iter().zip(logs.iter().map(String::as_str)).collect();
    let a = analyze_texts(&texts);
    let f = a.findings.iter().find(|f| f.id == "collective-mismatch").unwrap();
    assert_eq!((f.ranks.as_slice(), f.title.as_str()), (&[1][..], "Rank 1 differs in the count of call 1235: AllReduce of 5000 against AllReduce of 176"));
    // Init COMPLETE is the first line.
    let lines: Vec<(&str, u64)> = f.evidence.iter().map(|e| (e.file.as_str(), e.line)).collect();
    assert_eq!(lines[..2], [("rank1.log", 1236), ("rank0.log", 1236)]);
    assert!(f.evidence[0].text.contains("count 5000") && f.evidence[0].text.starts_with("node1:11"), "{}", f.evidence[0].text);
}

#[test]
fn a_call_that_one_rank_left_out_or_added_is_told_from_another_call() {
    type Change<'a> = &'a dyn Fn(&mut Vec<(&'static str, u64, u8)>);
    let title = |change: Change<'_>| {
        let mut odd = many(2000);
        change(&mut odd);
        find(&[log(0, &many(2000), "Abort"), log(1, &many(2000), "Abort"), log(2, &odd, "Abort")]).map(|(_, ranks, why)| (ranks, why)).unwrap()
    };
    let (ranks, why) = title(&|calls| {
        calls.remove(700);
    });
    assert_eq!(ranks, [2]);
    assert!(why.contains("Collective call 701") && why.contains("left out"), "{why}");
    let (ranks, why) = title(&|calls| calls.insert(1990, ("Broadcast", 3, 7)));
    assert_eq!(ranks, [2]);
    assert!(why.contains("Collective call 1991") && why.contains("goes on like everywhere else"), "{why}");
}

#[test]
fn calls_lost_from_a_shared_stream_are_no_mismatch() {
    let texts: Vec<String> = (0..3).map(|r| log(r, &many(1000), "Destroy")).collect();
    let mut lines: Vec<&str> = texts.iter().flat_map(|t| t.lines()).collect();
    lines.remove(1500);
    let shared = lines.join("\n");
    let a = analyze_texts(&[("job.log", &shared)]);
    assert!(a.findings.iter().all(|f| f.id != "collective-mismatch"), "{:?}", a.findings);
}

#[test]
fn calls_that_are_not_whole_accuse_nobody() {
    let b = ("Broadcast", 64, 7);
    let whole = [log(0, &[A, b, A], ""), log(1, &[A, b, A], ""), log(2, &[A, b, A], "")];
    // The beginning of one log is cut off.
    let cut = whole[2].split_inclusive('\n').skip(2).collect::<String>();
    assert!(find(&[whole[0].clone(), whole[1].clone(), cut]).is_none());
    // Ray folds equal lines into one.
    let folded = format!("{}(RayWorkerWrapper pid=7) node2:12:12 [0] NCCL INFO Using network IB [repeated 2x across cluster]\n", log(2, &[A, A], ""));
    assert!(find(&[whole[0].clone(), whole[1].clone(), folded]).is_none());
}
