//! missing-rank: One or more ranks never came, or stopped before the others.

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, evidence, hosts_of, ranks_of, ranks_text};
use super::waiting::has_stopped;
use super::{Cause, Rule, teardown};
use crate::event::Stage;
use crate::job::rank_of_name;
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "missing-rank", aliases: &[], summary: "One or more ranks never came, or stopped before the others.", explanation: include_str!("missing_rank.md") },
    check,
    explains: &["collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let found = super::ras::missing(ask).or_else(|| at_the_store(ask)).or_else(|| at_the_launcher(ask)).or_else(|| at_the_bootstrap(ask)).or_else(|| at_lightning(ask));
    found.into_iter().map(complete).collect()
}

fn new(confidence: Confidence, title: &str, why: String, ranks: Vec<u32>, hits: &[Hit<'_>]) -> Finding {
    let mut f = Finding::new("missing-rank", Severity::Error, confidence, capital(title));
    f.why = why;
    f.ranks = ranks;
    f.hosts = hosts_of(hits);
    f.evidence = hits.iter().take(6).map(Hit::evidence).collect();
    f
}

/// torch's store answered, but not everybody came.
fn at_the_store(ask: Ask<'_>) -> Option<Finding> {
    let barrier: Vec<Hit<'_>> = ask.hits("torch.store_barrier").into_iter().filter(|h| h.num("count") < h.num("world") && h.num("count").is_some()).collect();
    if let Some(h) = barrier.iter().max_by_key(|h| h.num("count")) {
        let (count, world) = (h.num("count")?, h.num("world")?);
        // Torch repeats the count while it waits; only the last word counts, and a later success takes it back.
        if !ask.hits("torch.store_barrier_done").iter().any(|d| teardown::order(h.at(), d.at()) == Some(std::cmp::Ordering::Less)) {
            let why = format!(
                "The store on rank 0's node answered and counted {count} of {world} ranks at the barrier, then the time was over. The store works; {} did not come: never started, died before, or went to another address.",
                plural(world - count)
            );
            return Some(new(Confidence::Certain, &format!("{} of {world} ranks came to the store barrier, {} missing", count, world - count), why, Vec::new(), &barrier));
        }
    }
    let clients: Vec<Hit<'_>> = ask.hits("torch.store_clients").into_iter().filter(|h| h.num("got") < h.num("want")).collect();
    if let Some(h) = clients.first() {
        let (got, want) = (h.num("got")?, h.num("want")?);
        let why = format!("Rank 0's store waited for {want} clients and {got} connected. The others were not started, or cannot reach this address.");
        return Some(new(Confidence::Likely, &format!("{got} of {want} processes joined the store"), why, Vec::new(), &clients));
    }
    let named = ask.hits("torch.missing_ranks");
    if let Some(h) = named.first() {
        let ranks: Vec<u32> = h.get("ranks").unwrap_or("").split(|c: char| !c.is_ascii_digit()).filter_map(|r| r.parse().ok()).collect();
        let why = "A monitored barrier names the ranks that did not reach it in time; all others did.".to_owned();
        return Some(new(Confidence::Likely, &format!("{} did not reach the barrier", ranks_text(&ranks)), why, ranks, &named));
    }
    let late: Vec<Hit<'_>> = ask.hits("launcher.rendezvous").into_iter().filter(|h| h.text().contains("RendezvousTimeout")).collect();
    if !late.is_empty() {
        let why = "torchrun waited for the minimum number of nodes and they did not all join its rendezvous in time: one was not started, or uses another address, port or id."
            .to_owned();
        return Some(new(Confidence::Likely, "Not enough nodes joined torchrun's rendezvous", why, Vec::new(), &late));
    }
    let waits: Vec<Hit<'_>> = ask.any_of(&["torch.store_timeout"]).into_iter().filter(|h| h.text().contains("wait timeout") || h.text().contains("imeout")).collect();
    let first = waits.first()?;
    let root = first.num("root").and_then(|r| u32::try_from(r).ok());
    let who = root.map_or_else(|| "the rank that creates the communicator's id".to_owned(), |r| format!("rank {r}"));
    let ranks: Vec<u32> = root.into_iter().collect();
    let why = format!(
        "The store answered, but the awaited key was never set: {who} did not come to this collective. It may be gone, still busy elsewhere (loading, caching), or on another path through the program."
    );
    Some(new(Confidence::Likely, &format!("{} waited at the store for {who}, which did not come", ranks_text(&ranks_of(&waits))), why, ranks, &waits))
}

fn plural(n: i64) -> String {
    if n == 1 { "one rank".to_owned() } else { format!("{n} ranks") }
}

/// A rank's start command failed, the others started and waited until they were ended.
fn at_the_launcher(ask: Ask<'_>) -> Option<Finding> {
    let exits: Vec<Hit<'_>> = ask.hits("app.exit").into_iter().filter(|h| h.num("rank").is_some() && h.num("code") != Some(0)).collect();
    let ended = ask.any_of(&["launch.time_limit", "launch.terminated", "launch.cancelled"]);
    let ranks: BTreeSet<u32> = exits.iter().filter_map(|h| h.num("rank").and_then(|r| u32::try_from(r).ok())).collect();
    let trouble = ask
        .procs()
        .any(|(_, p)| p.log.ledger.iter().any(|e| e.kind.starts_with("torch.") || e.kind.starts_with("socket.") || e.kind == "app.exception" || e.kind == "app.segfault"));
    let took_part = ask.procs().any(|(_, p)| p.nccl && p.rank.is_some_and(|r| ranks.contains(&r)));
    if ranks.is_empty() || ranks.len() > 2 || ended.is_empty() || trouble || took_part {
        return None;
    }
    let ranks: Vec<u32> = ranks.into_iter().collect();
    let hits: Vec<Hit<'_>> = exits.into_iter().chain(ended).collect();
    let why = format!(
        "The launcher reports that {} exited with an error and never took part in NCCL; the others ran on until they were ended from outside. A rendezvous without this rank cannot complete. The rank's own last lines say why its command failed.",
        ranks_text(&ranks)
    );
    Some(new(Confidence::Likely, &format!("{} exited before the rendezvous; the others waited for it", ranks_text(&ranks)), why, ranks, &hits))
}

/// All ranks with a log stand in the bootstrap, and some have none.
fn at_the_bootstrap(ask: Ask<'_>) -> Option<Finding> {
    // Init START came after the bootstrap before 2.23.4, and before it since.
    let met = |s: Stage| if ask.version().is_none_or(|v| v >= (2, 23, 4)) { s >= Stage::Bootstrapped } else { s >= Stage::InitStart };
    let rows = &ask.job.ranks;
    let waiting = !rows.is_empty() && rows.iter().all(|r| !met(r.stage) && r.stage >= Stage::BootstrapInterface);
    // Who still looks for networks does not wait for anybody.
    let there = rows.iter().filter(|r| r.stage >= Stage::Network).count() * 2 >= rows.len();
    if !waiting || !there || !has_stopped(ask) || teardown::origin(ask).is_some() || ask.procs().any(|(_, p)| p.log.comms.iter().any(|c| met(c.stage()))) {
        return None;
    }
    let present: BTreeSet<u32> = rows.iter().map(|r| r.rank).collect();
    let empty: BTreeSet<u32> = ask.job.streams.iter().filter(|s| s.events == 0).filter_map(|s| rank_of_name(&s.path)).filter(|r| !present.contains(r)).collect();
    let (absent, confidence): (BTreeSet<u32>, _) = if ask.job.nranks.is_some() {
        let absent: BTreeSet<u32> = ask.job.absent_ranks().into_iter().collect();
        let few = absent.len() < present.len() || (!empty.is_empty() && absent == empty);
        (absent, if few { Confidence::Likely } else { Confidence::Possible })
    } else if !empty.is_empty() {
        (empty.clone(), Confidence::Likely)
    } else {
        ((0..present.last().copied()?).filter(|r| !present.contains(r)).collect(), Confidence::Possible)
    };
    // Processes that speak before they name their rank may be the absent ones; NCCL prints no rank until then.
    let nameless = ask.procs().filter(|(_, p)| p.nccl && p.rank.is_none() && p.device_ranks.is_empty()).count();
    // Few logs of many ranks are a choice of the reader, no sign of the job.
    if absent.is_empty() || absent.len() > present.len() || nameless >= absent.len() {
        return None;
    }
    let absent: Vec<u32> = absent.into_iter().collect();
    let present: Vec<u32> = present.into_iter().collect();
    let wait = if present.len() == 1 { "waits" } else { "wait" };
    let empty_note = if empty.is_empty() { "" } else { " Its log is there and empty: it ended before its first line, or was killed with its buffer unwritten." };
    let mut f = Finding::new(
        "missing-rank",
        Severity::Error,
        confidence,
        format!("{} did not come; {} {wait} in the bootstrap", capital(&ranks_text(&absent)), ranks_text(&present)).chars().take(100).collect::<String>(),
    );
    f.why = format!(
        "All ranks with a log stopped before the bootstrap was complete, which needs every rank, and there is no line of {}.{empty_note} That its log was merely not given, or that it cannot reach the root's address, are the alternatives.",
        ranks_text(&absent)
    );
    f.ranks = absent;
    f.evidence = last_lines(ask);
    Some(f)
}

fn last_lines(ask: Ask<'_>) -> Vec<Evidence> {
    ask.job.ranks.iter().take(4).map(|r| evidence(ask.job, Some(r.rank), &r.last)).collect()
}

/// Lightning prints one line a rank, and one when all have met.
fn at_lightning(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("lightning.member");
    let world = hits.first()?.num("world")?;
    let seen: BTreeSet<i64> = hits.iter().filter_map(|h| h.num("rank")).collect();
    if ask.has("lightning.registered") || i64::try_from(seen.len()).ok()? >= world || seen.len() < 2 {
        return None;
    }
    let absent: Vec<u32> = (0..world).filter(|r| !seen.contains(r)).filter_map(|r| u32::try_from(r).ok()).collect();
    let why =
        "Each process announces itself when it starts the rendezvous, and the line that all have met is missing. Processes that log elsewhere are the alternative.".to_owned();
    Some(new(Confidence::Possible, &format!("{} of {world} processes announced themselves", seen.len()), why, absent, &hits))
}

fn complete(mut f: Finding) -> Finding {
    let who = if f.ranks.is_empty() { "the missing rank".to_owned() } else { ranks_text(&f.ranks) };
    f.fixes = vec![
        Fix {
            title: format!("Look at the process of {who}: did it start, and how did it end?"),
            when: "Always first".to_owned(),
            commands: vec![
                "ps -eo pid,lstart,stat,cmd | grep PROGRAM   # on its node".to_owned(),
                "sacct -j JOB --format=JobID,NodeList,State,ExitCode   /   kubectl get pods -o wide".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "none needed".to_owned(),
        },
        Fix {
            title: "Start as many processes as the world size says, all with the same address and port".to_owned(),
            when: "It was never started, or started against another rendezvous".to_owned(),
            commands: vec!["env | grep -e MASTER_ADDR -e MASTER_PORT -e WORLD_SIZE -e RANK -e NNODES   # on every node".to_owned()],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "restore the launch line".to_owned(),
        },
    ];
    f.avoid = vec!["Raising the rendezvous time-out, unless the rank is known to be merely slow.".to_owned()];
    f.verify = vec!["Every rank prints its Init lines, and the bootstrap's timings appear on all of them.".to_owned()];
    f
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Finding};

    fn find(texts: &[(&str, &str)]) -> Option<Finding> {
        analyze_texts(texts).findings.into_iter().find(|f| f.id == "missing-rank")
    }

    fn start(rank: u32, more: &str) -> String {
        let head = format!("node{rank}:1{rank}:1{rank} [0] NCCL INFO");
        format!(
            "{head} Bootstrap: Using eth0:192.0.2.1{rank}<0>\nNCCL version 2.27.3+cuda12.9\n{head} ncclCommInitRank comm 0x5500000{rank} rank {rank} nranks 3 cudaDev 0 nvmlDev 0 busId 17000 commId 0xabcdef12 - Init START\n{}",
            more.replace("HEAD", &head)
        )
    }

    #[test]
    fn ranks_that_wait_name_the_one_without_a_log() {
        let f = find(&[("rank0.log", &start(0, "")), ("rank2.log", &start(2, ""))]).unwrap();
        assert_eq!((f.confidence, f.ranks.as_slice()), (Confidence::Likely, &[1][..]));
    }

    #[test]
    fn an_incomplete_set_of_logs_is_no_finding() {
        let met = "HEAD Bootstrap timings total 0.1 (create 0.0, send 0.0, recv 0.0, ring 0.0, delay 0.0)\n";
        assert!(find(&[("rank0.log", &start(0, met)), ("rank2.log", &start(2, met))]).is_none());
        assert!(find(&[("rank0.log", &start(0, ""))]).is_none());
    }

    #[test]
    fn a_process_that_has_not_named_its_rank_may_be_the_absent_one() {
        let nameless = "node1:11:11 [0] NCCL INFO Bootstrap: Using eth0:192.0.2.11<0>\n";
        assert!(find(&[("rank0.log", &start(0, "")), ("b.log", nameless), ("rank2.log", &start(2, ""))]).is_none());
    }

    #[test]
    fn the_store_counts_who_came() {
        let f = find(&[("rank0.log", "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n")]).unwrap();
        assert_eq!(f.confidence, Confidence::Certain);
        assert!(f.title.starts_with("3 of 4"));
    }
}
