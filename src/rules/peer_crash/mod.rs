//! peer-crash: A rank's process or node died; the others lost their connection to it.

mod who;

use super::finding::{Evidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, evidence, ranks_of, ranks_text};
use super::{Cause, Rule, teardown, waiting};
use std::cmp::Ordering;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "peer-crash",
        aliases: &["remote-error"],
        summary: "A rank's process or node died; the others lost their connection to it.",
        explanation: include_str!("../peer_crash.md"),
    },
    check,
    explains: &["missing-rank", "collective-timeout", "stall"],
    only_alone: false,
};

/// A survivor's word that somebody is gone.
struct Complaint<'a> {
    hit: Hit<'a>,
    /// Address or host that it names.
    peer: Option<String>,
    /// It cannot be read as anything but a lost peer.
    strong: bool,
}

/// A record that says directly that a process died.
const DEATHS: &[&str] = &[
    "app.killed",
    "app.oom_killer",
    "kernel.oom_kill",
    "ray.worker_killed",
    "launch.node_failure",
    "launch.daemon_lost",
    "ray.node_died",
    "app.exit",
    "app.exit_signal",
    "launcher.first_failure",
    "vllm.worker_died",
];

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let gone = teardown::just_ended(ask);
    let end = teardown::Teardown::of(ask);
    let complaints: Vec<Complaint<'_>> = complaints(ask, &gone).into_iter().filter(|c| end.matters(&c.hit) && !ordered(ask, c)).collect();
    let deaths: Vec<Hit<'_>> = deaths(ask).into_iter().filter(|h| end.matters(h)).collect();
    if let Some(mut finding) = super::ras::dead(ask) {
        finding.fixes = fixes(finding.hosts.first().map_or("", String::as_str), false);
        finding.evidence.extend(complaints.iter().take(2).map(|c| c.hit.evidence()));
        return vec![finding];
    }
    if complaints.is_empty() && deaths.is_empty() {
        return Vec::new();
    }
    // Where a failure of another kind began, its rule names it, and the broken connections are its consequence.
    if teardown::origin(ask).is_some() || timed_out_before(ask, &complaints) || (deaths.is_empty() && teardown::stranded(ask)) {
        return Vec::new();
    }
    if gone.is_empty() && deaths.is_empty() && never_reached(ask) {
        return Vec::new();
    }
    let mut finding = write(ask, &complaints, &deaths, &gone);
    if deaths.is_empty() && gone.is_empty() && only_the_store(ask, &complaints) {
        finding.severity = Severity::Info;
        finding.why.push_str(" Only torch's store is missed, and no collective failed: where rank 0 leaves first at the end of a sound run, these lines come too.");
    }
    vec![finding]
}

/// All complaints are torch's warnings that the store has gone, and nothing else in the log speaks of a failure.
fn only_the_store(ask: Ask<'_>, complaints: &[Complaint<'_>]) -> bool {
    let store = complaints.iter().all(|c| c.hit.entry.kind == "torch.store_reset" && c.hit.text().contains("[c10d] ") && !c.hit.text().contains("[E"));
    let trouble = [
        "app.exit",
        "app.exit_signal",
        "app.exception",
        "app.traceback",
        "app.segfault",
        "torch.abort",
        "torch.nccl_error",
        "torch.terminate",
        "launch.mpi_exit",
        "launch.terminated",
    ];
    store && ask.has("torch.store_gone") && ask.any_of(&trouble).is_empty()
}

/// Survivors whose time had run out abort and close; who comes later then finds them gone.
fn timed_out_before(ask: Ask<'_>, complaints: &[Complaint<'_>]) -> bool {
    let timeouts = teardown::firsts(&ask.any_of(&["torch.watchdog_timeout", "torch.watchdog_work"]));
    let said = teardown::firsts(&complaints.iter().map(|c| c.hit).collect::<Vec<_>>());
    let timed = complaints.iter().filter(|c| c.hit.at().time.is_some()).map(|c| c.hit).min_by_key(|h| h.at().time);
    let earlier = |t: &Hit<'_>| said.iter().chain(&timed).any(|c| teardown::order(c.at(), t.at()) == Some(Ordering::Less));
    !timeouts.is_empty() && !complaints.is_empty() && !timeouts.iter().all(earlier)
}

/// A rank that never connected cannot lose anybody: nobody answered at an address before any communicator stood.
fn never_reached(ask: Ask<'_>) -> bool {
    ask.any_of(&["socket.retries_exceeded", "socket.connect_failed", "socket.connect_retry", "system.call_failed"]).iter().any(|h| {
        let tried_out = match h.entry.kind.as_str() {
            "socket.connect_retry" => h.text().contains("timeout"),
            "system.call_failed" => h.get("call") == Some("connect"),
            _ => true,
        };
        let log = &h.process().log;
        let worked = log.comms.iter().any(|c| c.complete.is_some() || c.calls.len > 0) || log.ledger.iter().any(|e| waiting::finished_one(ask, e));
        tried_out && !worked
    })
}

/// `192.0.2.7<40012>`, `node7.example<40012>`, `[2001:db8::7]<1>`, `ip 192.0.2.7, port 1` → the address alone.
fn address(peer: &str) -> Option<String> {
    let peer = peer.trim().trim_start_matches("ip ");
    let host = peer.split(['<', ',', ' ']).next()?;
    let host = if let Some(v6) = host.strip_prefix('[') { v6.split(']').next()? } else { host };
    let host = host.rsplit_once(':').map_or(host, |(h, port)| if h.contains(':') || port.parse::<u16>().is_err() { host } else { h });
    let host = host.trim_start_matches("::ffff:");
    (!host.is_empty()).then(|| host.to_owned())
}

fn lost(text: &str) -> bool {
    ["closed by peer", "reset by peer", "closed by remote", "Broken pipe", "onnection reset", "onnection timed out", "Software caused connection abort", "onnection aborted"]
        .iter()
        .any(|w| text.contains(w))
}

fn complaints<'a>(ask: Ask<'a>, gone: &[u32]) -> Vec<Complaint<'a>> {
    let kinds = [
        "socket.closed",
        "socket.error",
        "ib.completion",
        "torch.nccl_error",
        "torch.nccl_result",
        "torch.terminate",
        "torch.store_reset",
        "gloo.error",
        "ray.actor_died",
        "ray.worker_died",
        "ras.peer_dead",
        "jax.nccl_error",
    ];
    ask.any_of(&kinds)
        .into_iter()
        .filter_map(|hit| {
            let peer = hit.get("peer").and_then(address);
            let text = hit.text();
            let remote = text.contains("remote process exit") || text.contains("ncclRemoteError");
            let (wanted, strong) = match hit.entry.kind.as_str() {
                "socket.closed" | "ras.peer_dead" | "ray.actor_died" | "ray.worker_died" => (true, hit.entry.kind != "socket.closed"),
                "socket.error" => (hit.get("error").is_some_and(lost), false),
                // A completion that got no answer shows a dead peer only where somebody's log just ends.
                "ib.completion" => (hit.num("status") == Some(12) && !gone.is_empty(), false),
                "gloo.error" => (lost(text), false),
                "torch.store_reset" => (true, false),
                _ => (remote, remote),
            };
            let peer = peer.or_else(|| {
                if hit.entry.kind == "gloo.error" {
                    text.split('[').filter_map(|p| p.split(']').next()).rfind(|a| a.parse::<std::net::IpAddr>().is_ok()).map(str::to_owned)
                } else {
                    None
                }
            });
            wanted.then_some(Complaint { hit, peer, strong })
        })
        .collect()
}

/// The scheduler had ended the job before: whoever lost a connection then lost it on command.
fn ordered(ask: Ask<'_>, complaint: &Complaint<'_>) -> bool {
    let ends = ask.any_of(&["launch.time_limit", "launch.cancelled", "launch.preempted"]);
    ends.iter().any(|o| teardown::order(o.at(), complaint.hit.at()).is_some_and(Ordering::is_le))
}

/// Records of a kill that the launcher did not order itself.
fn deaths(ask: Ask<'_>) -> Vec<Hit<'_>> {
    let ordered = ask.any_of(&["launch.time_limit", "launch.cancelled", "launch.preempted", "launcher.sigterm", "app.interrupted", "app.exception", "torch.watchdog_timeout"]);
    // torchrun ends the others when it has seen the first failure, and writes its report behind that.
    let closed = ask.hits("launcher.closing");
    let by_torchrun = |h: &Hit<'_>| closed.iter().any(|c| before(c, h) && (h.num("pid").is_none() || c.num("pid") == h.num("pid")));
    ask.any_of(DEATHS)
        .into_iter()
        .filter(|h| match h.entry.kind.as_str() {
            "app.exit" => h.signal() == Some(9),
            "launcher.first_failure" => h.num("exitcode") == Some(-9),
            "app.killed" | "app.exit_signal" => h.num("signal").is_none_or(|s| s == 9),
            _ => true,
        })
        .filter(|h| !ordered.iter().any(|o| before(o, h)) && !by_torchrun(h))
        .collect()
}

fn before(one: &Hit<'_>, other: &Hit<'_>) -> bool {
    teardown::order(one.at(), other.at()).is_some_and(Ordering::is_le)
}

fn write(ask: Ask<'_>, complaints: &[Complaint<'_>], deaths: &[Hit<'_>], gone: &[u32]) -> Finding {
    let dead = who::decide(ask, complaints, deaths, gone);
    let survivors = ranks_of(&complaints.iter().map(|c| c.hit).collect::<Vec<_>>());
    let survivors: Vec<u32> = survivors.into_iter().filter(|r| !dead.ranks.contains(r)).collect();
    let at = if dead.place.is_empty() { String::new() } else { format!(" at {}", who::short(&dead.place)) };
    let subject = if dead.ranks.is_empty() { "A rank".to_owned() } else { capital(&ranks_text(&dead.ranks)) };
    let killed = !deaths.is_empty() && deaths.iter().all(|h| matches!(h.entry.kind.as_str(), "app.exit" | "app.exit_signal" | "launcher.first_failure" | "app.killed"));
    let many = dead.ranks.len() > 1;
    let how = match (dead.by_kernel, killed) {
        (true, _) if many => "were killed for lack of host memory",
        (true, _) => "was killed for lack of host memory",
        (false, true) if many => "were killed (SIGKILL)",
        (false, true) => "was killed (SIGKILL)",
        (false, false) => "died or left",
    };
    let seen = if survivors.is_empty() { String::new() } else { format!("; {} lost the connection", ranks_text(&survivors)) };
    let mut finding = Finding::new("peer-crash", Severity::Error, dead.confidence, format!("{subject}{at} {how}{seen}").chars().take(100).collect::<String>());
    let victims =
        if complaints.is_empty() { String::new() } else { format!(" The survivors' errors are consequences, however many they are: {} complained here.", count(complaints)) };
    finding.why = format!("{}{victims} What ended the process must be read in its own log, in the launcher's exit lines or in the node's kernel log.", dead.reason);
    finding.evidence = dead.evidence;
    finding.evidence.extend(deaths.iter().take(2).map(Hit::evidence));
    finding.evidence.extend(complaints.iter().take(3).map(|c| c.hit.evidence()));
    finding.evidence.extend(last_words(ask, &dead.ranks));
    finding.hosts = dead.hosts;
    finding.fixes = fixes(&dead.place, dead.by_kernel);
    finding.ranks = dead.ranks;
    finding.avoid = vec![
        "Searching the network from the loudest rank: the survivors' lines are the same for every reason of a death.".to_owned(),
        "Raising time-outs or retries (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT): nobody will answer.".to_owned(),
    ];
    finding.verify =
        vec!["The process's exit code (137 is SIGKILL, 139 SIGSEGV, 143 SIGTERM) and `dmesg -T | grep -i -e 'killed process' -e segfault -e xid` on its node.".to_owned()];
    finding
}

fn count(complaints: &[Complaint<'_>]) -> String {
    let ranks = ranks_of(&complaints.iter().map(|c| c.hit).collect::<Vec<_>>()).len();
    match ranks {
        0 => "unnamed ranks".to_owned(),
        1 => "one rank".to_owned(),
        n => format!("{n} ranks"),
    }
}

/// The last line of each dead rank.
fn last_words(ask: Ask<'_>, ranks: &[u32]) -> Vec<Evidence> {
    ask.job.ranks.iter().filter(|r| ranks.contains(&r.rank)).take(2).map(|r| evidence(ask.job, Some(r.rank), &r.last)).collect()
}

fn fixes(place: &str, by_kernel: bool) -> Vec<Fix> {
    let node = if place.is_empty() { "its node".to_owned() } else { place.to_owned() };
    let mut list = vec![Fix {
        title: format!("Find out what ended the process on {node}"),
        when: "Its log just ends, or its exit code is -9 or 137".to_owned(),
        commands: vec![
            "dmesg -T | grep -i -e 'out of memory' -e 'killed process' -e segfault -e NVRM".to_owned(),
            "journalctl -k --since '1 hour ago'; sacct -j JOB --format=JobID,State,ExitCode,MaxRSS; kubectl describe pod POD".to_owned(),
        ],
        needs: "root".to_owned(),
        cost: "none".to_owned(),
        undo: "none needed".to_owned(),
    }];
    list.push(Fix {
        title: "Give the job more host memory, or use less (workers, pinned buffers, caches)".to_owned(),
        when: if by_kernel { "The out-of-memory killer ended it".to_owned() } else { "The kernel log names the out-of-memory killer, or nobody else killed it".to_owned() },
        commands: vec!["#SBATCH --mem=0   /   docker run --memory …   /   resources.limits.memory".to_owned()],
        needs: "nothing".to_owned(),
        cost: "memory".to_owned(),
        undo: "restore the limit".to_owned(),
    });
    if by_kernel {
        list.reverse();
    }
    list
}

#[cfg(test)]
mod tests;
