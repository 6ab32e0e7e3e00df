//! collective-timeout: A collective timed out, and nothing in the logs says why.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, hosts_of, ranks_text};
use super::{Cause, Rule, teardown};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "collective-timeout",
        aliases: &[],
        summary: "A collective timed out, and nothing in the logs says why.",
        explanation: include_str!("collective_timeout.md"),
    },
    check,
    explains: &["app-crash"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut hits = ask.any_of(&["torch.watchdog_timeout", "torch.watchdog_work"]);
    let mut confidence = Confidence::Likely;
    if hits.is_empty() {
        // The dump signal is sent for a time-out whose own line is above the cut.
        hits = ask.any_of(&["torch.dump_signal", "torch.missing_ranks"]);
    }
    if hits.is_empty() {
        hits = ask.any_of(&["torch.heartbeat", "vllm.rpc_timeout", "jax.gave_up"]);
        confidence = Confidence::Possible;
    }
    if hits.is_empty() && ask.has("torch.abort") && ask.any_of(&["torch.nccl_error", "torch.nccl_result", "torch.cuda_error", "torch.terminate"]).is_empty() {
        // The end of the watchdog's report: what it met is above the cut, a time-out more often than not.
        hits = ask.hits("torch.watchdog_status").into_iter().filter(|h| h.text().contains("failure detected by watchdog")).collect();
        confidence = Confidence::Possible;
    }
    let Some(first) = teardown::first(&hits) else { return Vec::new() };
    if teardown::Teardown::of(ask).covers(&first) {
        return Vec::new();
    }
    vec![describe(ask, &hits, first, confidence)]
}

/// The ranks that a record speaks of: torch's own word before the process's.
fn waiting(hits: &[Hit<'_>]) -> Vec<u32> {
    // A dump signal names the rank that timed out.
    let mut ranks: Vec<u32> = hits.iter().filter_map(|h| h.num("from").or_else(|| h.num("pg_rank")).and_then(|r| u32::try_from(r).ok()).or_else(|| h.rank())).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn describe(ask: Ask<'_>, hits: &[Hit<'_>], first: Hit<'_>, confidence: Confidence) -> Finding {
    let stuck: Vec<Hit<'_>> = ask.hits("torch.watchdog_status").into_iter().filter(|h| h.num("enqueued") > h.num("completed")).collect();
    let idle = idle(ask);
    let mut waiting = waiting(&hits.iter().copied().chain(stuck).collect::<Vec<_>>());
    waiting.retain(|r| !idle.contains(r));
    let work = hits.iter().find(|h| h.get("op").is_some()).copied().unwrap_or(first);
    let what = match (work.get("op"), work.get("seq")) {
        (Some(op), Some(seq)) => format!("{op} number {seq}"),
        (Some(op), None) => op.to_owned(),
        _ => "A collective".to_owned(),
    };
    let after = work.num("timeout_ms").map_or_else(String::new, |ms| format!(" after {} s", ms / 1000));
    let quiet: Vec<u32> = ask.job.ranks.iter().map(|r| r.rank).filter(|r| !waiting.contains(r) && !idle.contains(r)).collect();
    let mut finding = Finding::new("collective-timeout", Severity::Error, confidence, format!("{what} timed out{after} on {}", ranks_text(&waiting)));
    let mut why = "A collective was enqueued and did not finish in time, and nothing better is known from these logs. The waiting ranks are the victims: look for the rank that did not come, or came late.".to_owned();
    if work.num("seq") == Some(1) || ask.hits("torch.watchdog_status").iter().any(|h| h.num("completed") == Some(-1)) {
        why.push_str(" It was the first collective of the group, so the way between the GPUs has never worked: transport or set-up.");
    } else {
        why.push_str(" Collectives before it had finished, so the transport works: a straggler, a dead rank or a fault in the meantime is more likely than the set-up.");
    }
    if !idle.is_empty() {
        let _ = write!(why, " {} had nothing outstanding (all that was enqueued had completed), so they stood elsewhere in the program.", capital(&ranks_text(&idle)));
    } else if !quiet.is_empty() && quiet.len() < waiting.len() {
        let _ = write!(why, " {} printed no time-out: look there first.", capital(&ranks_text(&quiet)));
    }
    if let Some(text) = out_of_step(hits) {
        why.push_str(&text);
    }
    if let Some((rank, seconds)) = straggler(hits) {
        let _ = write!(
            why,
            " The time of {} ran out last, {seconds} s behind the others: it came to this collective last, so it is the one to look at, not a victim.",
            ranks_text(&[rank])
        );
    }
    for line in super::collective_mismatch::unanswered(ask).iter().take(2) {
        let _ = write!(why, " {line}");
    }
    finding.why = why;
    finding.ranks = waiting;
    finding.hosts = hosts_of(hits);
    finding.evidence = std::iter::once(work).chain(hits.iter().copied().take(3)).chain(ask.hits("torch.watchdog_status").into_iter().take(3)).map(|h| h.evidence()).collect();
    finding.fixes = fixes();
    finding.avoid = vec!["Only raising the time-out: it helps where a rank is known to be slow (loading, checkpoint), and hides everything else.".to_owned()];
    finding.verify = vec!["Flight recorder: all ranks enqueue the same collectives with the same sizes up to the last one.".to_owned()];
    finding
}

/// Ranks that wait in different numbers, each in its first one that timed out.
fn out_of_step(hits: &[Hit<'_>]) -> Option<String> {
    let mut places: BTreeMap<i64, BTreeSet<u32>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for hit in hits.iter().filter(|h| h.entry.kind == "torch.watchdog_timeout") {
        let rank = hit.num("pg_rank").and_then(|r| u32::try_from(r).ok()).or_else(|| hit.rank())?;
        if let Some(seq) = hit.num("seq").filter(|_| seen.insert(rank)) {
            places.entry(seq).or_default().insert(rank);
        }
    }
    let ((low, behind), (high, ahead)) = (places.first_key_value()?, places.last_key_value()?);
    let names = |ranks: &BTreeSet<u32>| ranks_text(&ranks.iter().copied().collect::<Vec<_>>());
    (low < high).then(|| {
        format!(
            " They wait in different ones: {} in number {low}, {} in number {high}. In one group all ranks stand in the same: either these are different groups, or the ranks have lost step, and one of them left out or added collectives.",
            names(behind),
            names(ahead)
        )
    })
}

/// The rank whose time ran out clearly behind all others', in the same collective and on the same clock, with the
/// seconds: each rank's time begins when it comes.
fn straggler(hits: &[Hit<'_>]) -> Option<(u32, i64)> {
    const CLOSE: i64 = 2_000_000;
    let timeouts: Vec<&Hit<'_>> = hits.iter().filter(|h| h.entry.kind == "torch.watchdog_timeout").collect();
    let mut times: Vec<(i64, u32)> = Vec::new();
    let (seq, clock) = (timeouts.first()?.get("seq")?, timeouts.first()?.at().time?.clock);
    for hit in timeouts {
        let time = hit.at().time.filter(|t| t.clock == clock && hit.get("seq") == Some(seq))?;
        let rank = hit.num("rank").and_then(|r| u32::try_from(r).ok()).or_else(|| hit.rank())?;
        times.push((time.micros, rank));
    }
    times.sort_unstable();
    let (last, rank) = times.pop()?;
    let (first, before) = (times.first()?.0, times.last()?.0);
    let others = times.iter().filter(|(_, r)| *r != rank).count();
    (others >= 2 && others == times.len() && before - first <= CLOSE && last - before > CLOSE).then_some((rank, (last - before) / 1_000_000))
}

/// Ranks whose last enqueued collective had completed.
fn idle(ask: Ask<'_>) -> Vec<u32> {
    let hits: Vec<Hit<'_>> = ask
        .any_of(&["torch.watchdog_status", "torch.dump_signal"])
        .into_iter()
        .filter(|h| h.rank().is_some() || h.num("pg_rank").is_some())
        .filter(|h| h.num("enqueued").is_some_and(|n| n > 0) && h.num("enqueued") == h.num("completed"))
        .collect();
    let mut ranks: Vec<u32> = hits.iter().filter_map(|h| h.num("pg_rank").and_then(|r| u32::try_from(r).ok()).or_else(|| h.rank())).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Record what each rank was doing and compare".to_owned(),
            when: "It happens again".to_owned(),
            commands: vec![
                "TORCH_NCCL_TRACE_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/fr_".to_owned(),
                "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL NCCL_DEBUG_FILE=nccl.%h.%p.log".to_owned(),
                "py-spy dump --pid PID   # on the rank that does not wait in the collective".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "little".to_owned(),
            undo: "unset them".to_owned(),
        },
        Fix {
            title: "Give slow phases their own, longer limit".to_owned(),
            when: "One rank is known to work longer (tokenising, checkpoint, compilation)".to_owned(),
            commands: vec!["torch.distributed.init_process_group(…, timeout=datetime.timedelta(minutes=60))".to_owned()],
            needs: "nothing".to_owned(),
            cost: "a real hang is seen later".to_owned(),
            undo: "restore the former timeout".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Verdict;

    const LINE: &str = "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=49, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n";

    #[test]
    fn the_end_of_a_watchdogs_report_is_a_timeout_at_best() {
        let text = "[rank5]:[E314 10:30:11.1 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank 5]  failure detected by watchdog at work sequence id: 881 PG status: last enqueued work: 890, last completed work: 880\n[rank5]:[E314 10:30:11.1 ProcessGroupNCCL.cpp:698] [Rank 5] To avoid data inconsistency, we are taking the entire process down.\n";
        let f = &analyze_texts(&[("tail.log", text)]).findings[0];
        assert_eq!((f.id, f.confidence, f.ranks.as_slice()), ("collective-timeout", crate::rules::Confidence::Possible, &[5][..]));
    }

    #[test]
    fn a_printed_timeout_alone_is_the_finding() {
        let a = analyze_texts(&[("rank0.log", LINE)]);
        let f = &a.findings[0];
        assert_eq!(f.id, "collective-timeout");
        assert!(f.title.contains("ALLREDUCE number 49 timed out after 600 s"), "{}", f.title);
        assert_ne!(a.verdict, Verdict::Healthy);
    }

    #[test]
    fn slow_beats_are_no_timeout() {
        let a = analyze_texts(&[("rank0.log", "INFO 01-01 10:00:00 [shm_broadcast.py:1] No available shared memory broadcast block found in 60 seconds.\n")]);
        assert!(a.findings.iter().all(|f| f.id != "collective-timeout"));
    }

    #[test]
    fn ranks_that_wait_in_different_collectives_are_named() {
        let timeout = |rank: u32, seq: u32| {
            format!(
                "[rank{rank}]:[E ProcessGroupNCCL.cpp:523] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=1800000) ran for 1800411 milliseconds before timing out.\n"
            )
        };
        let why = |texts: &[String]| analyze_texts(&[("job.log", &texts.concat())]).findings.into_iter().find(|f| f.id == "collective-timeout").map(|f| f.why).unwrap();
        assert!(why(&[timeout(0, 96_120), timeout(7, 64_088)]).contains("rank 7 in number 64088, rank 0 in number 96120"));
        assert!(!why(&[timeout(0, 9), timeout(7, 9)]).contains("number 9, "));
    }
}
