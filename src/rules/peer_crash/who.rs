//! Who died: by the log that just ends, by whom the survivors name, by what the launcher or kernel says.

use super::super::finding::{Confidence, Evidence};
use super::super::query::{Ask, Hit};
use super::Complaint;
use crate::job::rank_of_name;
use std::collections::{BTreeMap, BTreeSet};

/// The best answer.
pub struct Dead {
    /// World ranks; empty where nobody can be named.
    pub ranks: Vec<u32>,
    /// Their host or address; empty if unknown or several.
    pub place: String,
    /// Hosts.
    pub hosts: Vec<String>,
    /// The out-of-memory killer did it.
    pub by_kernel: bool,
    /// How sure.
    pub confidence: Confidence,
    /// The reading.
    pub reason: String,
    /// Lines that name them.
    pub evidence: Vec<Evidence>,
}

/// Address or host name → ranks.
fn directory(ask: Ask<'_>) -> BTreeMap<String, BTreeSet<u32>> {
    let mut map: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for hit in ask.hits("bootstrap.using") {
        if let (Some(ip), Some(rank)) = (hit.get("ip"), hit.rank()) {
            map.entry(ip.to_owned()).or_default().insert(rank);
        }
    }
    for (_, p) in ask.procs() {
        let ranks: Vec<u32> = p.rank.into_iter().chain(p.device_ranks.iter().map(|(_, r)| *r)).collect();
        for host in std::iter::once(p.host.as_str()).chain(p.log.wrap_hosts.iter().map(String::as_str)).filter(|h| !h.is_empty()) {
            map.entry(short(host).to_owned()).or_default().extend(&ranks);
        }
    }
    map
}

/// A host's name without its domain; addresses stay.
pub fn short(host: &str) -> &str {
    if host.parse::<std::net::IpAddr>().is_ok() { host } else { host.split('.').next().unwrap_or(host) }
}

/// Ranks of the last run that neither complained nor printed an end.
fn quiet(ask: Ask<'_>, complaints: &[Complaint<'_>]) -> BTreeSet<u32> {
    let loud: BTreeSet<u32> = complaints.iter().filter_map(|c| c.hit.rank()).collect();
    let ended: BTreeSet<u32> = ask.comms().flat_map(|c| ask.views(c).filter(|(_, l)| l.end.is_some()).filter_map(|(m, _)| m.rank).collect::<Vec<_>>()).collect();
    // A log in which nothing was recognised belongs to its rank by its name alone.
    let unread = ask.job.streams.iter().filter(|s| s.events == 0 && s.lines > 0).filter_map(|s| rank_of_name(&s.path));
    ask.job.ranks.iter().map(|r| r.rank).chain(unread).filter(|r| !loud.contains(r) && !ended.contains(r)).collect()
}

/// Ranks whose own log stops before the first complaint, by clocks that compare, while the others' go on.
fn stopped_early(ask: Ask<'_>, complaints: &[Complaint<'_>]) -> BTreeSet<u32> {
    let Some(first) = complaints.iter().filter_map(|c| c.hit.at().time).min() else { return BTreeSet::new() };
    let own = |stream: u32| ask.job.ranks.iter().filter(|r| r.last.at.stream == stream).count() == 1;
    let last = |stream: u32| ask.job.streams.get(stream as usize).and_then(|s| s.last_time).filter(|t| t.clock == first.clock);
    let early: BTreeSet<u32> = ask.job.ranks.iter().filter(|r| last(r.last.at.stream).is_some_and(|t| t < first) && own(r.last.at.stream)).map(|r| r.rank).collect();
    if early.len() * 2 > ask.job.ranks.len() { BTreeSet::new() } else { early }
}

/// Decides.
pub fn decide(ask: Ask<'_>, complaints: &[Complaint<'_>], deaths: &[Hit<'_>], gone: &[u32]) -> Dead {
    let map = directory(ask);
    let names: BTreeSet<&str> = complaints.iter().filter_map(|c| c.peer.as_deref()).collect();
    let named: BTreeSet<u32> = names.iter().filter_map(|n| map.get(short(n))).flatten().copied().collect();
    let quiet = quiet(ask, complaints);
    let early: BTreeSet<u32> = stopped_early(ask, complaints).intersection(&quiet).copied().collect();
    let gone: BTreeSet<u32> = gone.iter().copied().collect();
    let both: BTreeSet<u32> = named.intersection(&gone).copied().collect();
    let strong = complaints.iter().any(|c| c.strong);
    let by_launcher: BTreeSet<u32> =
        deaths.iter().filter_map(|h| h.num("rank").and_then(|r| u32::try_from(r).ok()).or_else(|| rank_of_pid(ask, h)).or_else(|| rank_in_report(ask, h))).collect();
    let mut dead = choose(&Signs { named: &named, quiet: &quiet, early: &early, gone: &gone, both: &both, by_launcher: &by_launcher, any_death: !deaths.is_empty(), strong });
    if let (Some(name), 1, true) = (names.first(), names.len(), named.is_empty()) {
        (*name).clone_into(&mut dead.place);
        if dead.ranks.is_empty() {
            dead.reason = format!("The survivors name {name}, of which there is no log here.");
        }
    }
    store_owner(ask, complaints, &mut dead);
    dead.by_kernel = deaths.iter().any(|h| matches!(h.entry.kind.as_str(), "app.oom_killer" | "kernel.oom_kill" | "ray.worker_killed"));
    let mut hosts: Vec<String> = ask.job.ranks.iter().filter(|r| dead.ranks.contains(&r.rank)).filter_map(|r| r.host.clone()).collect();
    hosts.extend(deaths.iter().filter_map(|h| h.get("host")).map(str::to_owned));
    hosts.sort();
    hosts.dedup();
    if let [one] = hosts.as_slice()
        && dead.place.is_empty()
    {
        dead.place.clone_from(one);
    }
    dead.hosts = hosts;
    dead.evidence = complaints
        .iter()
        .filter(|c| c.peer.as_deref().is_some_and(|p| map.get(short(p)).is_some_and(|r| dead.ranks.iter().any(|d| r.contains(d)))))
        .take(2)
        .map(|c| c.hit.evidence())
        .collect();
    dead
}

/// The rank that torchrun's report names for the process: in the lines right above its exit code.
fn rank_in_report(ask: Ask<'_>, death: &Hit<'_>) -> Option<u32> {
    const BLOCK: u64 = 4;
    let pid = death.num("pid")?;
    let exits = ask.any_of(&["app.exit", "app.exit_signal"]);
    let mut places = exits.iter().filter(|h| h.num("pid") == Some(pid)).map(Hit::at);
    let place = places.find(|at| at.stream == death.at().stream)?;
    let ranks = ask.hits("launcher.block_rank");
    let above = |h: &&Hit<'_>| h.at().stream == place.stream && h.at().line < place.line && place.line - h.at().line <= BLOCK;
    ranks.iter().filter(above).max_by_key(|h| h.at().line)?.num("rank").and_then(|r| u32::try_from(r).ok())
}

/// The rank of the process that a death names by its number. Two hosts, or a container and its host, may use one number
/// twice.
fn rank_of_pid(ask: Ask<'_>, death: &Hit<'_>) -> Option<u32> {
    let pid = u32::try_from(death.num("pid")?).ok()?;
    let host = short(death.host());
    let mut owners = ask.procs().filter(|(_, p)| p.pid == pid && (host.is_empty() || short(&p.host) == host)).map(|(_, p)| p.rank);
    let owner = owners.next()?;
    owners.next().is_none().then_some(owner)?
}

struct Signs<'a> {
    named: &'a BTreeSet<u32>,
    quiet: &'a BTreeSet<u32>,
    early: &'a BTreeSet<u32>,
    gone: &'a BTreeSet<u32>,
    both: &'a BTreeSet<u32>,
    by_launcher: &'a BTreeSet<u32>,
    any_death: bool,
    strong: bool,
}

fn choose(s: &Signs<'_>) -> Dead {
    let pick = |ranks: &BTreeSet<u32>, confidence, reason: &str| Dead {
        ranks: ranks.iter().copied().collect(),
        place: String::new(),
        hosts: Vec::new(),
        by_kernel: false,
        confidence,
        reason: reason.to_owned(),
        evidence: Vec::new(),
    };
    let named_quiet: BTreeSet<u32> = s.named.intersection(s.quiet).copied().collect();
    if !s.both.is_empty() {
        return pick(s.both, Confidence::Certain, "The survivors name its address, and its own log just ends while the others print the end of the communicator.");
    }
    if !s.by_launcher.is_empty() {
        return pick(s.by_launcher, Confidence::Likely, "The launcher or the kernel says that this process was killed, before anything else went wrong.");
    }
    if !s.gone.is_empty() {
        return pick(s.gone, Confidence::Likely, "Its log just ends while all others print the end of the communicator. A log that was cut is the alternative.");
    }
    let named_early: BTreeSet<u32> = s.named.intersection(s.early).copied().collect();
    if !named_early.is_empty() {
        return pick(&named_early, Confidence::Likely, "The survivors name its host, and its own log stops before their first complaint.");
    }
    if !named_quiet.is_empty() {
        return pick(
            &named_quiet,
            Confidence::Likely,
            "The survivors name its host, and its own log ends without any complaint. A broken link between the two hosts is the alternative; then both sides would complain.",
        );
    }
    if !s.early.is_empty() && s.named.is_empty() {
        return pick(s.early, Confidence::Likely, "Its log stops before the first complaint of the others, by the clocks of the lines.");
    }
    let none = BTreeSet::new();
    if s.any_death {
        return pick(&none, Confidence::Likely, "A process of the job was killed; the lines do not say which rank it was.");
    }
    if !s.named.is_empty() {
        let grade = if s.strong { Confidence::Likely } else { Confidence::Possible };
        return pick(s.named, grade, "The survivors name its address. It complains itself, so the order of the ends is unknown: it may be the first victim rather than the cause.");
    }
    if s.quiet.len() == 1 {
        return pick(s.quiet, if s.strong { Confidence::Likely } else { Confidence::Possible }, "It is the only rank that neither complains nor prints an end.");
    }
    pick(
        &none,
        if s.strong { Confidence::Likely } else { Confidence::Possible },
        "A peer closed its connection or vanished in the middle of the work; these lines do not say which rank it was.",
    )
}

/// A broken store speaks of the process that holds it: rank 0's.
fn store_owner(ask: Ask<'_>, complaints: &[Complaint<'_>], dead: &mut Dead) {
    let store = complaints.iter().any(|c| c.hit.entry.kind == "torch.store_reset");
    let rank0_complains = complaints.iter().any(|c| c.hit.rank() == Some(0));
    if store && dead.ranks.is_empty() && !rank0_complains && !ask.has("torch.not_destroyed") {
        dead.ranks = vec![0];
        "The store of torch lives in rank 0's process, and the others lost their connection to it.".clone_into(&mut dead.reason);
    }
}
