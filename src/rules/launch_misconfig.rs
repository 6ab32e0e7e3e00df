//! launch-misconfig: The launch is wrong: ranks are claimed twice, sizes disagree, or two jobs meet.

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::network;
use super::query::{Ask, Hit, evidence, hosts_of, ranges, ranks_of};
use super::{Cause, Rule};
use crate::job::Comm;
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "launch-misconfig",
        aliases: &[],
        summary: "The launch is wrong: ranks are claimed twice, sizes disagree, or two jobs meet.",
        explanation: include_str!("launch_misconfig.md"),
    },
    check,
    explains: &["app-crash", "bootstrap-unreachable", "peer-crash", "missing-rank", "collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let found = twice(ask).or_else(|| sizes(ask)).or_else(|| port(ask)).or_else(|| ids(ask)).or_else(|| two_roots(ask)).or_else(|| magic(ask));
    found
        .map(|mut f| {
            f.fixes = fixes();
            f.verify = vec!["Every rank from 0 to the size minus 1 appears once, with the same size and the same commId.".to_owned()];
            f.avoid = vec!["Longer time-outs: the right ranks never meet.".to_owned()];
            f
        })
        .into_iter()
        .collect()
}

fn of_hits(confidence: Confidence, title: String, why: &str, hits: &[Hit<'_>]) -> Finding {
    let mut f = Finding::new(RULE.cause.id, Severity::Error, confidence, title);
    f.why = why.to_owned();
    f.ranks = ranks_of(hits);
    f.hosts = hosts_of(hits);
    f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    f
}

/// The root saw one rank twice.
fn twice(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("bootstrap.rank_twice");
    let first = hits.first()?;
    let (rank, size) = (first.num("peer_rank")?, first.num("count")?);
    let why = "The root of the bootstrap counts the ranks as they come. One number came twice, so two processes were started with it: node ranks overlap, the launcher was started twice, or two jobs share one address and port.";
    let mut f = of_hits(Confidence::Certain, format!("Two processes claim rank {rank} of {size}"), why, &hits);
    f.ranks.extend(u32::try_from(rank));
    Some(f)
}

/// The store cannot listen.
fn port(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("torch.store_bind");
    hits.first()?;
    // The bare line comes first, the exception that repeats it with the reason behind it.
    let mut texts = hits.iter().flat_map(|h| h.entry.samples.iter().chain([&h.entry.last])).map(|s| s.text.to_ascii_lowercase());
    let taken = texts.any(|t| t.contains("in use") || t.contains("eaddrinuse"));
    let (confidence, what) = if taken { (Confidence::Certain, "its port is taken") } else { (Confidence::Likely, "it cannot listen") };
    let why = "Rank 0's process opens the store at MASTER_PORT, and that port cannot be opened. Mostly an earlier run still holds it, a second job uses the same port, or two processes were started as rank 0.";
    Some(of_hits(confidence, format!("The store cannot start: {what}"), why, &hits))
}

/// Ranks disagree on the size.
fn sizes(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("bootstrap.rank_mismatch");
    if let Some(first) = hits.first() {
        let (a, b) = (first.num("got")?, first.num("want")?);
        let why = format!("One rank was started for a job of {a} ranks and another for {b}: nodes were launched with different counts of processes or nodes, or two jobs met.");
        let mut f = of_hits(Confidence::Certain, format!("Ranks disagree on the size of the job: {a} and {b}"), &why, &hits);
        f.evidence.extend(starts(ask, |_| true));
        f.evidence.truncate(6);
        return Some(f);
    }
    let mut by_id: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for c in ask.comms().filter(|c| !c.is_child) {
        if let (Some(id), Some(n)) = (c.id, c.nranks) {
            by_id.entry(id).or_default().insert(n);
        }
    }
    let (id, sizes) = by_id.into_iter().find(|(_, s)| s.len() > 1)?;
    let list: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, format!("Ranks of one communicator name different sizes: {}", list.join(" and ")));
    f.why = "The ranks share one id but were told different numbers of ranks. The launch counts processes differently on its nodes.".to_owned();
    f.evidence = starts(ask, |c| c.id == Some(id));
    Some(f)
}

/// `Init START` lines of communicators that did not complete.
fn starts(ask: Ask<'_>, wanted: impl Fn(&Comm) -> bool) -> Vec<Evidence> {
    let lines = ask.comms().filter(|c| wanted(c)).flat_map(|c| ask.views(c)).filter_map(|(m, l)| l.start.as_ref().map(|s| evidence(ask.job, m.rank, s)));
    lines.take(4).collect()
}

/// Communicators of the job's size, none complete, with different ids: each process made an id of its own, or the
/// processes belong to different jobs.
fn ids(ask: Ask<'_>) -> Option<Finding> {
    let size = ask.job.nranks.filter(|n| *n > 1)?;
    let open: Vec<&Comm> = ask.comms().filter(|c| !c.is_child && c.nranks == Some(size) && c.id.is_some()).collect();
    if open.len() < 2 || open.iter().any(|c| c.members.len() >= size as usize || ask.views(c).any(|(m, l)| l.complete.is_some() || network::bootstrapped(ask, m.proc))) {
        return None;
    }
    // One process may hold several communicators; here different processes must be alone in theirs.
    let mut procs = BTreeSet::new();
    if open.iter().flat_map(|c| &c.members).any(|m| !procs.insert(m.proc)) {
        return None;
    }
    let mut ranks: Vec<u32> = open.iter().flat_map(|c| &c.members).filter_map(|m| m.rank).collect();
    let count = ranks.len();
    ranks.sort_unstable();
    let double = ranks.windows(2).find(|w| w[0] == w[1]).map(|w| w[0]);
    ranks.dedup();
    let (title, why) = match double {
        Some(r) => (
            format!("{} processes act as rank {r} of {size}, each with a communicator of its own", count - ranks.len() + 1),
            "Each made a unique id for itself and waits for the other ranks, which never come. The launcher gave the same rank to several processes (RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK was not read), or these are logs of two jobs.",
        ),
        None => (
            format!("Ranks {} start with different communicator ids", ranges(&ranks)),
            "All ranks of a job must get the id that rank 0 made. These have different ones, so they belong to different jobs or launches and wait for each other in vain.",
        ),
    };
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Likely, title);
    f.why = why.to_owned();
    f.ranks = ranks;
    f.hosts = network::hosts_of(ask, &procs);
    f.evidence = starts(ask, |c| c.nranks == Some(size));
    f.evidence.extend(ask.hits("socket.wrong_magic").first().map(Hit::evidence));
    Some(f)
}

/// Up to 2.21 only rank 0 prints the bare version line.
fn two_roots(ask: Ask<'_>) -> Option<Finding> {
    if ask.procs().any(|(p, proc)| network::bootstrapped(ask, p) || proc.log.comms.iter().any(|c| c.rank.is_some())) || ask.job.hosts.len() < 2 {
        return None;
    }
    let old = |p: usize| network::version_of(ask, p).is_some_and(|v| v < (2, 22, 0));
    let hits: Vec<Hit<'_>> = ask.hits("init.version").into_iter().filter(|h| old(h.proc) && !h.text().contains("NCCL INFO")).collect();
    let streams: BTreeSet<u32> = hits.iter().map(|h| h.at().stream).collect();
    if streams.len() < 2 {
        return None;
    }
    let why = "In this version only rank 0 prints the version line, and several processes did; none got past the bootstrap. Each seems to be rank 0 of a job of its own and waits for the others. Logs of separate jobs look the same.";
    Some(of_hits(Confidence::Possible, format!("{} processes act as rank 0", streams.len()), why, &hits))
}

/// Something connected that does not know this job's number.
fn magic(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("socket.wrong_magic");
    let first = hits.first()?;
    // A port scanner does no harm to a job that goes on.
    if ask.procs().any(|(p, _)| network::bootstrapped(ask, p)) {
        return None;
    }
    let peer = first.get("peer").map(network::host_part);
    let known = ask.hits("bootstrap.using").iter().any(|h| peer.is_some() && h.get("ip") == peer);
    let confidence = if known { Confidence::Likely } else { Confidence::Possible };
    let why = "A connection carried another job's number and was turned away. If it came from a rank of this job, that rank got the id of another launch; if not, it is another job on the same port, a health check or a port scanner, which does no harm by itself.";
    Some(of_hits(confidence, format!("A connection{} belongs to another job", peer.map_or_else(String::new, |p| format!(" from {p}"))), why, &hits))
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Give every process its own rank and the same size".to_owned(),
            when: "A rank is claimed twice or sizes differ.".to_owned(),
            commands: vec![
                "env | grep -E 'RANK|WORLD_SIZE|MASTER_|SLURM_(PROCID|NTASKS|NODEID)|OMPI_COMM'   # inside every process".to_owned(),
                "torchrun --nnodes=<nodes> --node_rank=<0, 1, … : another one on each node> --nproc_per_node=<GPUs> …".to_owned(),
            ],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
        Fix {
            title: "End left-over processes and use a fresh port".to_owned(),
            when: "An earlier or another job uses the same address and port.".to_owned(),
            commands: vec!["nvidia-smi; ps aux | grep -E 'torchrun|python'   # on every node".to_owned(), "export MASTER_PORT=<a free port>".to_owned()],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn find(texts: &[(&str, &str)]) -> Option<Finding> {
        analyze_texts(texts).findings.into_iter().find(|f| f.id == "launch-misconfig")
    }

    fn start(host: &str, rank: u32, size: u32, id: &str) -> String {
        format!(
            "{host}:7{rank}:7{rank} [0] NCCL INFO Bootstrap: Using eth0:10.4.0.{}<0>\n{host}:7{rank}:7{rank} [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n{host}:7{rank}:7{rank} [0] NCCL INFO ncclCommInitRank comm 0x66{rank} rank {rank} nranks {size} cudaDev 0 nvmlDev 0 busId 1000 commId {id} - Init START\n",
            host.len()
        )
    }

    #[test]
    fn a_rank_that_came_twice() {
        let f = find(&[("a.log", "alpha:1:2 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in\n")]).unwrap();
        assert_eq!((f.confidence, f.title.as_str()), (Confidence::Certain, "Two processes claim rank 3 of 8"));
    }

    #[test]
    fn two_processes_are_rank_0() {
        let f = find(&[("a.log", &start("alpha", 0, 2, "0xa1")), ("b.log", &start("betas", 0, 2, "0xb2"))]).unwrap();
        assert_eq!(f.confidence, Confidence::Likely);
        assert!(f.title.contains("act as rank 0 of 2"), "{}", f.title);
    }

    #[test]
    fn sizes_of_one_communicator_differ() {
        let f = find(&[("a.log", &start("alpha", 0, 2, "0xa1")), ("b.log", &start("betas", 1, 3, "0xa1"))]).unwrap();
        assert_eq!(f.confidence, Confidence::Certain);
    }

    #[test]
    fn a_port_that_is_taken() {
        let log = "[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n";
        assert_eq!(find(&[("a.log", log)]).unwrap().confidence, Confidence::Certain);
    }

    #[test]
    fn one_job_is_fine() {
        assert!(find(&[("a.log", &start("alpha", 0, 2, "0xa1")), ("b.log", &start("betas", 1, 2, "0xa1"))]).is_none());
    }

    #[test]
    fn a_scanner_on_a_running_job_is_nothing() {
        let log = start("alpha", 0, 1, "0xa1")
            + "alpha:70:70 [0] NCCL INFO ncclCommInitRank comm 0x660 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0xa1 - Init COMPLETE\nalpha:70:71 [0] NCCL INFO socketFinalizeAccept: didn't receive a valid magic from 203.0.113.9<28872>\n";
        assert!(find(&[("a.log", &log)]).is_none());
    }

    #[test]
    fn the_exception_behind_the_bare_line_names_the_reason() {
        let bare = "[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address.\n";
        let named = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n";
        let title = |text: &str| crate::analysis::analyze_texts(&[("job.log", text)]).findings[0].title.clone();
        assert!(title(bare).contains("cannot listen"), "{}", title(bare));
        assert!(title(&format!("{bare}{named}")).contains("port is taken"), "{}", title(&format!("{bare}{named}")));
    }
}
