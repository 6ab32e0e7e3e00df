//! One culprit among many: whoever died first is named, however many others complain, and the report stays short.

use ncclog::analysis::analyze_texts;
use ncclog::report::{self, Format};
use ncclog::rules::{Analysis, Verdict};
use std::fmt::Write as _;

const RANKS: u32 = 4096;
const PER_HOST: u32 = 8;

fn head(rank: u32) -> String {
    format!("gpu{:03}:{}:{} [{}] NCCL INFO", rank / PER_HOST, 2000 + rank, 2000 + rank, rank % PER_HOST)
}

fn address(rank: u32) -> String {
    let host = rank / PER_HOST;
    format!("10.1.{}.{}", host / 250, 1 + host % 250)
}

/// A rank's log: it comes up, works for a while, and ends as `end` says.
fn log(rank: u32, ranks: u32, end: &str) -> String {
    let (head, comm) = (head(rank), format!("{:#x}", 0x5500_0000_0000_u64 + u64::from(rank) * 0x1000));
    let mut text = format!("{head} Bootstrap: Using eth0:{}<0>\n{head} NCCL version 2.27.7+cuda12.9\n{head} Using network IB\n", address(rank));
    let life = format!("rank {rank} nranks {ranks} cudaDev {} nvmlDev {} busId {:x}000", rank % PER_HOST, rank % PER_HOST, 0x10 + rank % PER_HOST);
    let _ = writeln!(text, "{head} ncclCommInitRank comm {comm} {life} commId 0xfeed5eed00c0ffee - Init START");
    let _ = writeln!(text, "{head} Connected all rings, use ring PXN 0 GDR 1");
    let _ = writeln!(text, "{head} ncclCommInitRank comm {comm} {life} commId 0xfeed5eed00c0ffee - Init COMPLETE");
    for i in 0..6 {
        let _ =
            writeln!(text, "{head} AllReduce: opCount {i:x} sendbuff 0x7f00 recvbuff 0x7f80 count {} datatype 7 op 0 root 0 comm {comm} [nranks={ranks}] stream 0x55", 1000 + i);
    }
    text + &end.replace("HEAD", &head).replace("COMM", &comm).replace("LIFE", &life)
}

fn closed(rank: u32, by: u32) -> String {
    format!(
        "{}:{} [{}] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer {}<{}>\nHEAD comm COMM LIFE - Abort COMPLETE\n",
        head(rank).split(':').next().unwrap_or_default(),
        format_args!("{}:{}", 2000 + rank, 9000 + rank),
        rank % PER_HOST,
        address(by),
        40_000 + by % 20_000
    )
}

fn analyse(logs: &[String]) -> Analysis {
    let names: Vec<String> = (0..logs.len()).map(|r| format!("rank{r:04}.log")).collect();
    let texts: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(logs.iter().map(String::as_str)).collect();
    analyze_texts(&texts)
}

fn text(analysis: &Analysis) -> String {
    let mut out = Vec::new();
    report::write(Format::Text, analysis, &mut out, &report::Options { width: 80, ..report::Options::default() }).expect("memory");
    String::from_utf8(out).expect("text")
}

#[test]
fn one_of_4096_ranks_that_died_first_is_named_and_the_report_fits_two_screens() {
    const DEAD: u32 = 1777;
    // The neighbours name the dead one's node; everybody else loses a neighbour that gave up.
    let logs: Vec<String> = (0..RANKS)
        .map(|r| {
            let by = if r.abs_diff(DEAD) <= 9 { DEAD } else { (r + PER_HOST) % RANKS };
            log(r, RANKS, &if r == DEAD { String::new() } else { closed(r, by) })
        })
        .collect();
    let analysis = analyse(&logs);
    let roots: Vec<_> = analysis.findings.iter().filter(|f| f.is_root()).collect();
    assert_eq!(roots.len(), 1, "{:?}", analysis.findings.iter().map(|f| (f.id, &f.title)).collect::<Vec<_>>());
    assert_eq!((roots[0].id, roots[0].ranks.as_slice()), ("peer-crash", &[DEAD][..]));
    assert!(roots[0].title.contains("1777") && roots[0].title.contains("gpu222"), "{}", roots[0].title);
    assert_eq!(analysis.verdict, Verdict::Failed);
    let text = text(&analysis);
    // A terminal breaks commands that are longer than a row; they are never wrapped, so that they can be copied.
    assert!(text.lines().map(|l| l.chars().count().div_ceil(80).max(1)).sum::<usize>() <= 100, "{text}");
}

#[test]
fn many_ranks_in_good_order_are_healthy() {
    let logs: Vec<String> = (0..512).map(|r| log(r, 512, "HEAD comm COMM LIFE - Destroy COMPLETE\n")).collect();
    let analysis = analyse(&logs);
    assert_eq!(analysis.verdict, Verdict::Healthy, "{:?}", analysis.findings);
    assert!(text(&analysis).lines().count() <= 60);
}

#[test]
fn the_teardown_storm_after_a_good_run_is_no_failure() {
    let logs: Vec<String> =
        (0..64).map(|r| log(r, 64, &format!("HEAD comm COMM LIFE - Destroy COMPLETE\n{}", closed(r, (r + 8) % 64).lines().next().unwrap_or_default()))).collect();
    let analysis = analyse(&logs);
    assert!(analysis.findings.iter().all(|f| !f.is_root()), "{:?}", analysis.findings);
}

fn timeout(rank: u32, clock: &str) -> String {
    format!(
        "[rank{rank}]:[E703 {clock} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1006, NumelOut=1006, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
    )
}

#[test]
fn the_straggler_that_reports_last_is_not_taken_for_a_victim() {
    let logs: Vec<String> = (0..64).map(|r| log(r, 64, &timeout(r, if r == 37 { "10:05:40.000000001" } else { "10:00:00.100000001" }))).collect();
    let analysis = analyse(&logs);
    let f = analysis.findings.iter().find(|f| f.id == "collective-timeout").expect("the time-out");
    assert!(f.why.contains("rank 37 ran out last, 339 s behind"), "{}", f.why);
}

#[test]
fn the_rank_out_of_memory_without_a_watchdog_line_is_the_cause() {
    let oom = "[rank21]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 5 has a total capacity of 79.11 GiB of which 1.02 GiB is free.\n";
    let logs: Vec<String> = (0..64).map(|r| log(r, 64, &if r == 21 { oom.to_owned() } else { timeout(r, "10:00:00.100000001") })).collect();
    let analysis = analyse(&logs);
    let root = analysis.findings.iter().find(|f| f.is_root()).expect("a cause");
    assert_eq!((root.id, root.ranks.as_slice()), ("gpu-oom", &[21][..]), "{:?}", analysis.findings.iter().map(|f| (f.id, &f.title)).collect::<Vec<_>>());
    assert!(analysis.findings.iter().filter(|f| f.id != "gpu-oom").all(|f| !f.is_root()));
}
