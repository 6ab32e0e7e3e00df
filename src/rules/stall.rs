//! stall: Ranks wait, and nothing in the logs says why.

use super::finding::{Confidence, Evidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines};
use super::{Cause, Rule, waiting};
use crate::event::Stage;
use crate::job::RankRow;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "stall", aliases: &[], summary: "Ranks wait, and nothing in the logs says why.", explanation: include_str!("stall.md") },
    check,
    explains: &[],
    only_alone: true,
};

/// What the waiting looks like.
struct Wait {
    title: String,
    why: String,
    ranks: Vec<u32>,
    proof: Vec<Evidence>,
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    if waiting::failed(ask) {
        return Vec::new();
    }
    let found = beat(ask).or_else(|| silence(ask)).or_else(|| tail(ask)).or_else(|| table(ask)).or_else(|| inside(ask));
    let Some(wait) = found else { return Vec::new() };
    let mut finding = Finding::new("stall", Severity::Warning, Confidence::Possible, wait.title);
    finding.why = wait.why;
    finding.ranks = wait.ranks;
    finding.hosts = ask.hosts().into_iter().map(str::to_owned).collect();
    finding.evidence = wait.proof;
    finding.fixes = vec![fix(
        "Get a log that shows where each rank stands",
        "First; it costs one more run.",
        &["export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH", "export NCCL_DEBUG_FILE=nccl.%h.%p.log PYTHONUNBUFFERED=1"],
        "nothing",
        "a larger log",
        "unset NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE",
    )];
    finding.avoid = lines(&["Raising time-outs before it is known what the ranks wait for."]);
    finding.verify = lines(&[
        "py-spy dump --pid PID   # on every rank: the one whose stack differs is the one the others wait for",
        "nvidia-smi   # 100 % on all GPUs: they stand in a collective; 0 % on one: it never called it",
    ]);
    vec![finding]
}

/// A front process reports that it waits.
fn beat(ask: Ask<'_>) -> Option<Wait> {
    let hits = waiting::beats(ask);
    let first = hits.first()?;
    if ask.any_of(&["vllm.ready", "vllm.tps", "sglang.ready", "tgi.shard_ready", "tgi.webserver", "jax.unstuck"]).iter().any(|h| h.at() > first.at()) {
        return None;
    }
    // A model whose shards are counted behind the last beat is being read, however long that takes.
    let last = hits.iter().map(|h| h.entry.last.at).max();
    if ask.hits("vllm.load_progress").iter().any(|h| Some(h.entry.last.at) > last) {
        return None;
    }
    let count: u64 = hits.iter().map(Hit::count).sum();
    let (who, note) = match first.entry.kind.as_str() {
        "tgi.shard_wait" => (
            "the launcher waits for its shards",
            "It is printed every ten seconds during a normal model load too, so only its length tells: minutes are normal, a quarter of an hour is not.",
        ),
        "vllm.core_wait" => {
            ("the front end waits for its engine processes", "It is printed every ten seconds while models are fetched, loaded or compiled too, so only its length tells.")
        }
        "jax.stuck" => {
            ("participants of a collective wait for one that has not come", "XLA prints it after ten seconds, also while another process still compiles, so only its length tells.")
        }
        "horovod.stall" => ("some ranks called a collective that others have not called", "Horovod names the ranks that are missing."),
        _ => (
            "a worker does not answer its front process",
            "The beat comes once a minute. It speaks of the framework's own message queue: neither of the size of /dev/shm nor of P2P.",
        ),
    };
    let named = ranks_of(&hits);
    let ranks = if named.is_empty() { hits.iter().filter_map(|h| h.num("rank").and_then(|r| u32::try_from(r).ok())).collect() } else { named };
    Some(Wait {
        title: format!("The job waits: {who} ({count} reports), and nothing says why"),
        why: format!("{note} No line names a cause."),
        ranks,
        proof: hits.iter().take(4).map(Hit::evidence).collect(),
    })
}

/// A live log that does not grow while a communicator is being made: who waits for whom, and what usually causes it.
fn silence(ask: Ask<'_>) -> Option<Wait> {
    let seconds = waiting::silence(ask)?;
    let rows = &ask.job.ranks;
    let stage = rows.iter().map(|r| r.stage).min()?;
    let (behind, ahead): (Vec<_>, Vec<_>) = rows.iter().partition(|r| r.stage == stage);
    let numbers = |list: &[&RankRow]| list.iter().map(|r| r.rank).collect::<Vec<u32>>();
    let absent = ask.job.absent_ranks();
    let name = words(stage);
    let who = match (ahead.is_empty(), absent.is_empty()) {
        (_, false) => format!("{} wait for {}, which printed nothing", ranks_text(&numbers(&rows.iter().collect::<Vec<_>>())), ranks_text(&absent)),
        (false, true) => format!("{} wait for {}", ranks_text(&numbers(&ahead)), ranks_text(&numbers(&behind))),
        (true, true) => format!("{} all wait", ranks_text(&numbers(&behind))),
    };
    Some(Wait {
        title: format!("No progress for {seconds} s: {who} ({name})"),
        why: format!(
            "The ranks that came least far stand at: {name}. {} The end of a log is a lower bound, for NCCL does not flush its standard output: with NCCL_DEBUG_FILE and PYTHONUNBUFFERED=1 the last lines are not missing.",
            usual_cause(stage)
        ),
        proof: behind.iter().chain(&ahead).take(4).map(|r| super::query::evidence(ask.job, Some(r.rank), &r.last)).collect(),
        ranks: if absent.is_empty() { numbers(&behind) } else { absent },
    })
}

fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Loaded | Stage::BootstrapInterface | Stage::NetPlugin | Stage::NetDevices => "before the network is chosen",
        Stage::Network | Stage::InitStart => "in the bootstrap",
        Stage::Bootstrapped | Stage::Topology | Stage::Graph => "while the topology is searched",
        Stage::Layout | Stage::Proxy | Stage::Connecting => "while channels connect",
        Stage::Connected | Stage::Tuned => "after the channels connected",
        Stage::InitComplete | Stage::Collective => "after Init COMPLETE",
    }
}

/// What usually causes a wait at exactly this stage.
fn usual_cause(stage: Stage) -> &'static str {
    match stage {
        Stage::Loaded | Stage::BootstrapInterface | Stage::NetPlugin | Stage::NetDevices => {
            "Usual causes there: a net plugin or RDMA device that does not answer, or a name service that is slow."
        }
        Stage::Network | Stage::InitStart => {
            "Usual causes there: a rank that was never started or died, a firewall between the nodes, or an interface that the others cannot reach (NCCL_SOCKET_IFNAME)."
        }
        Stage::Bootstrapped | Stage::Topology | Stage::Graph => {
            "Usual causes there: a GPU or driver of one node that does not answer (NVML, nvidia-smi), or very large systems, where the search takes its time."
        }
        Stage::Layout | Stage::Proxy | Stage::Connecting => {
            "Usual causes there: GPUs that do not reach each other (IOMMU, ACS), queue pairs that do not connect (GID, MTU, subnet), or a firewall between the data ports."
        }
        Stage::Connected | Stage::Tuned | Stage::InitComplete | Stage::Collective => {
            "Usual causes there: one rank that is late or has left; the others meet it at the last barrier."
        }
    }
}

/// A test of collectives ends before its first result.
fn table(ask: Ask<'_>) -> Option<Wait> {
    let head = waiting::table_without_row(ask)?;
    Some(Wait {
        title: "nccl-tests printed the head of its table and no row: the first collective did not end".to_owned(),
        why: "The ranks connected, and nothing came through after that. A log that was cut at this place looks the same. Between nodes one run with NCCL_NET_GDR_LEVEL=LOC tells whether GPU Direct RDMA is at fault (ACS, IOMMU), inside a node one with NCCL_P2P_DISABLE=1.".to_owned(),
        ranks: ask.job.ranks.iter().map(|r| r.rank).collect(),
        proof: vec![head.evidence()],
    })
}

/// The framework stopped where NCCL starts.
fn tail(ask: Ask<'_>) -> Option<Wait> {
    let tail = waiting::framework_tail(ask)?;
    Some(Wait {
        title: "The framework stopped where NCCL starts; the next line is missing".to_owned(),
        why: "The last stage that was printed comes right before ncclCommInitRank and its first collective. Either a rank did not come or the GPUs do not reach each other."
            .to_owned(),
        ranks: tail.next.rank().into_iter().collect(),
        proof: vec![tail.next.evidence()],
    })
}

/// All ranks end inside the same stage of the initialisation.
fn inside(ask: Ask<'_>) -> Option<Wait> {
    if let Some(comm) = ask.job.world()
        && waiting::stopped_connecting(ask, comm)
    {
        let ranks: Vec<u32> = waiting::present(comm).into_iter().collect();
        return Some(Wait {
            title: format!("{} all end while they connect their channels", ranks_text(&ranks)),
            why: "Every rank printed its channels and none printed `Connected all rings`: each waits for its peer. The end of a log is a lower bound, for NCCL does not flush its output.".to_owned(),
            proof: ask.views(comm).filter_map(|(m, l)| l.last.as_ref().map(|s| super::query::evidence(ask.job, m.rank, s))).take(4).collect(),
            ranks,
        });
    }
    let proof = waiting::stopped_in_bootstrap(ask)?;
    let mut ranks: Vec<u32> = proof.iter().filter_map(|e| e.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let size = ask.job.nranks.map_or(String::new(), |n| format!(" of {n}"));
    Some(Wait {
        title: format!("{} log(s){size} end in the bootstrap: the ranks wait for each other", proof.len()),
        why: "Every log ends where the ranks meet over TCP, and there is no error. A rank that never started leaves no line anywhere, and the root waits for it without a time-out; a firewall that drops packets looks the same. Count the processes, then try the root's address and port from each host.".to_owned(),
        ranks,
        proof: proof.into_iter().take(6).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Severity, Verdict};

    fn start(host: &str, rank: u32) -> String {
        format!(
            "{host}:50{rank}:50{rank} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{rank}<0>\n{host}:50{rank}:50{rank} [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.{rank}<0>\n{host}:50{rank}:50{rank} [0] NCCL INFO Using network IB\n"
        )
    }

    #[test]
    fn beats_without_a_cause() {
        let text = "2025-01-01T10:00:00.1Z  INFO shard-manager: text_generation_launcher: Waiting for shard to be ready... rank=0\n2025-01-01T10:00:10.1Z  INFO shard-manager: text_generation_launcher: Waiting for shard to be ready... rank=1\n";
        let a = analyze_texts(&[("tgi.log", text)]);
        let f = a.findings.iter().find(|f| f.id == "stall").expect("stall");
        assert_eq!((f.severity, f.confidence), (Severity::Warning, Confidence::Possible));
        assert_eq!(a.verdict, Verdict::Stalled);
        let ready = format!("{text}2025-01-01T10:01:00.1Z  INFO shard-manager: text_generation_launcher: Shard ready in 60.1s rank=0\n");
        assert!(analyze_texts(&[("tgi.log", &ready)]).findings.iter().all(|f| f.id != "stall"));
    }

    #[test]
    fn a_test_without_a_first_row() {
        let done = |host: &str, r: u32| {
            format!("{host}:5{r}:5{r} [0] NCCL INFO ncclCommInitRank comm 0x77{r} rank {r} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xfeed - Init COMPLETE\n")
        };
        let head = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
        let log = done("n1", 0) + &done("n2", 1) + head;
        let a = analyze_texts(&[("test.log", &log)]);
        assert_eq!(a.verdict, Verdict::Stalled);
        assert!(a.findings.iter().any(|f| f.id == "stall"));
        let row = "           8             2     float     sum      -1    28.11    0.00    0.00      0    27.90    0.00    0.00      0\n";
        assert_eq!(analyze_texts(&[("test.log", &(log + row))]).verdict, Verdict::Healthy);
    }

    #[test]
    fn a_model_that_is_being_read_behind_the_beats_is_no_hang() {
        let beat = "INFO 03-14 10:22:11 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 second. This typically happens when some processes are hanging, doing some time-consuming work (e.g. compilation, weight/kv cache quantization).\n";
        let read = "Loading safetensors checkpoint shards:  12% Completed | 20/163 [02:11<15:37,  6.55s/it]\n";
        let stalls = |text: &str| analyze_texts(&[("vllm.log", text)]).findings.iter().any(|f| f.id == "stall");
        assert!(stalls(&format!("{read}{beat}")));
        assert!(!stalls(&format!("{beat}{read}")));
    }

    #[test]
    fn xla_says_that_a_thread_waits_and_that_it_goes_on() {
        let stuck = "E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `first call to collective operation 7; run_id=3` for 20 seconds and may be stuck. Expected 8 threads to join the rendezvous\n";
        let stalls = |text: &str| analyze_texts(&[("jax.log", text)]).findings.iter().any(|f| f.id == "stall");
        assert!(stalls(stuck));
        assert!(!stalls(&format!("{stuck}E external/xla/xla/service/rendezvous.cc:43] Thread is unstuck! Warning above was a false-positive.\n")));
    }

    #[test]
    fn all_logs_end_in_the_bootstrap() {
        let (a, b) = (start("n1", 1), start("n2", 2));
        let waits = |texts: &[(&str, &str)]| analyze_texts(texts).findings.iter().any(|f| matches!(f.id, "stall" | "missing-rank" | "bootstrap-unreachable"));
        assert!(waits(&[("rank0.log", &a), ("rank1.log", &b)]));
        let further = format!("{b}n2:502:502 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE\n");
        assert!(analyze_texts(&[("rank0.log", &a), ("rank1.log", &further)]).findings.iter().all(|f| f.id != "stall"));
    }
}
