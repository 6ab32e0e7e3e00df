//! bootstrap-unreachable: A rank cannot reach another at the address it advertises.

mod advice;
mod data;
mod framework;
#[cfg(test)]
mod tests;

use super::finding::{Confidence, Finding, Severity};
use super::network::{self, Link, names_text};
use super::query::{Ask, Hit, evidence, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};
use crate::event::Stage;
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "bootstrap-unreachable",
        aliases: &[],
        summary: "A rank cannot reach another at the address it advertises.",
        explanation: include_str!("../bootstrap_unreachable.md"),
    },
    check,
    explains: &["peer-crash", "missing-rank", "collective-timeout", "stall", "fabric-split"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    no_interface(ask)
        .or_else(|| wrong_id(ask))
        .or_else(|| no_address(ask))
        .or_else(|| data::check(ask))
        .or_else(|| refused(ask))
        .or_else(|| framework::check(ask))
        .or_else(|| dead_end(ask))
        .or_else(|| silent(ask))
        .into_iter()
        .collect()
}

fn start(confidence: Confidence, severity: Severity, title: String, why: String, hits: &[Hit<'_>]) -> Finding {
    let mut f = Finding::new(RULE.cause.id, severity, confidence, title);
    f.why = why;
    f.ranks = ranks_of(hits);
    f.hosts = hosts_of(hits);
    f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    f
}

/// The filter of interfaces leaves none.
fn no_interface(ask: Ask<'_>) -> Option<Finding> {
    let mut hits = ask.any_of(&["bootstrap.no_interface", "socket.no_interface"]);
    // Outside the bootstrap this is a plugin's or a later communicator's matter.
    hits.retain(|h| h.entry.kind == "bootstrap.no_interface" || !network::bootstrapped(ask, h.proc));
    let first = *hits.first()?;
    let procs: BTreeSet<usize> = hits.iter().map(|h| h.proc).collect();
    let setting = ask.settings("NCCL_SOCKET_IFNAME").into_iter().find(|s| procs.contains(&s.proc)).or_else(|| ask.settings("NCCL_SOCKET_IFNAME").into_iter().next());
    let place = if hosts_of(&hits).is_empty() { String::new() } else { format!(" on {}", names_text(&hosts_of(&hits).iter().map(String::as_str).collect::<Vec<_>>())) };
    let (title, mut why) = match (&setting, first.get("name")) {
        (_, Some(name)) => {
            (network::fit(format!("NCCL_OOB_NET_IFNAME={name} matches no device"), &place), "The out-of-band network was limited to a device that is not there.".to_owned())
        }
        (Some(s), None) => (
            network::fit(format!("NCCL_SOCKET_IFNAME={} matches no interface", s.value), &place),
            format!("NCCL_SOCKET_IFNAME={} lets no network interface of this host pass, so the rank cannot take part in the bootstrap.", s.value),
        ),
        (None, None) => (
            network::fit("No network interface fits".to_owned(), &place),
            "No interface of this host fits NCCL_SOCKET_IFNAME or the address family (NCCL_SOCKET_FAMILY), so the rank cannot take part in the bootstrap.".to_owned(),
        ),
    };
    if let Some(hca) = setting.as_ref().and_then(|s| network::wanted(s.value).into_iter().find(|n| network::is_hca(n))) {
        why.push_str(&format!(
            " {hca} is the name of an RDMA device: it belongs into NCCL_IB_HCA; NCCL_SOCKET_IFNAME wants the network interface of the same link (`rdma link show` gives the pair)."
        ));
    } else {
        why.push_str(" Interface names differ between hosts and are case-sensitive; the value is a prefix unless it begins with `=`.");
    }
    let mut f = start(Confidence::Certain, Severity::Error, title, why, &hits);
    f.evidence.extend(setting.map(|s| s.evidence()));
    f.fixes = vec![advice::interface(ask, None)];
    f.verify = advice::verify();
    Some(f)
}

/// NCCL_COMM_ID is unusable.
fn wrong_id(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.any_of(&["bootstrap.no_subnet", "bootstrap.bad_comm_id"]);
    let first = hits.first()?;
    let id = ask.settings("NCCL_COMM_ID").first().map(|s| s.value.to_owned()).unwrap_or_default();
    let title = match first.get("addr") {
        Some(addr) => format!("{} has no interface in the subnet of {addr}", ranks_text(&ranks_of(&hits))),
        None => format!("NCCL_COMM_ID={id} is not HOST:PORT"),
    };
    let mut f = start(
        Confidence::Certain,
        Severity::Error,
        title,
        "NCCL_COMM_ID says where the root of the bootstrap listens. This rank cannot get there with the interfaces it has.".to_owned(),
        &hits,
    );
    f.fixes = vec![advice::interface(ask, None)];
    f.verify = advice::verify();
    Some(f)
}

/// The peer's address came out empty: nothing was chosen there.
fn no_address(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("bootstrap.family").into_iter().filter(|h| h.num("family").is_some_and(|f| f != 0 || !network::bootstrapped(ask, h.proc))).collect();
    hits.first()?;
    // Without a filter two versions of the library are the better reading (version-mismatch).
    let setting = ask.settings("NCCL_SOCKET_IFNAME").into_iter().next()?;
    let value = format!("NCCL_SOCKET_IFNAME={}", setting.value);
    let why = format!(
        "A rank tried to connect to an address that was never filled in. That happens where {value} matches no interface of a host and an old version goes on without one. Two library versions in one job are the other reading."
    );
    let mut f = start(Confidence::Likely, Severity::Error, format!("A rank advertises no address: {value} matches nothing"), why, &hits);
    f.evidence.push(setting.evidence());
    f.fixes = vec![advice::interface(ask, None)];
    f.verify = advice::verify();
    Some(f)
}

/// What a failed connect says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    NoRoute,
    Unreachable,
    TimedOut,
    Refused,
    Aborted,
    /// The system refuses to send at all: a local firewall or policy.
    Forbidden,
    /// The address does not fit the interfaces of this host.
    WrongLink,
}

impl Answer {
    fn of(hit: &Hit<'_>) -> Option<Self> {
        let words = [hit.get("text").unwrap_or_default(), hit.get("error").unwrap_or_default()].concat().to_ascii_lowercase();
        let text = if words.is_empty() { hit.text().to_ascii_lowercase() } else { words };
        let has = |w: &str| text.contains(w);
        if has("no route") {
            Some(Self::NoRoute)
        } else if has("network is unreachable") {
            Some(Self::Unreachable)
        } else if has("timed out") || hit.text().contains("exceeded timeouts") {
            Some(Self::TimedOut)
        } else if has("refused") || hit.text().contains("exceeded retries") {
            Some(Self::Refused)
        } else if has("software caused connection abort") {
            Some(Self::Aborted)
        } else if has("permission denied") || has("operation not permitted") {
            Some(Self::Forbidden)
        } else if has("cannot assign requested address") || has("invalid argument") {
            Some(Self::WrongLink)
        } else {
            None
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::NoRoute => "No route to host: a firewall rejects the packets, or the address lies behind an interface that does not lead there.",
            Self::Unreachable => "Network is unreachable: this host has no route to that network, so the peer advertises an interface that this host does not share.",
            Self::TimedOut => "The connection timed out: packets are dropped by a firewall, or the address leads nowhere.",
            Self::Refused => {
                "Connection refused: nobody listens there. Either the address belongs to another machine than meant (docker0, a bridge, lo), or the rank behind it never started or is gone."
            }
            Self::Forbidden => "This host does not let the connection out: a local firewall, a network policy of the container or a security module forbids it.",
            Self::WrongLink => {
                "This host cannot send to that address from the interface that was chosen: a link-local IPv6 address without its interface, or an address of loopback, is the usual reason."
            }
            Self::Aborted => "The connection was given up after many refusals: nobody listens at that address for this job.",
        }
    }

    fn is_path(self) -> bool {
        matches!(self, Self::NoRoute | Self::Unreachable | Self::TimedOut | Self::Forbidden | Self::WrongLink)
    }
}

/// A connection failed for good, or is retried without end.
fn refused(ask: Ask<'_>) -> Option<Finding> {
    let retries: Vec<Hit<'_>> = ask.hits("socket.connect_retry").into_iter().filter(|h| lasting(ask, h)).collect();
    let mut final_ones = ask.any_of(&["socket.connect_failed", "socket.retries_exceeded"]);
    // A connection that was never made shows where it is used first; a lost one has other words.
    final_ones.extend(ask.hits("socket.error").into_iter().filter(|h| early(ask, h) && matches!(Answer::of(h), Some(Answer::Refused | Answer::NoRoute | Answer::Unreachable))));
    let failed: Vec<(Hit<'_>, Answer)> = final_ones
        .iter()
        .chain(&retries)
        .filter_map(|h| Answer::of(h).map(|a| (*h, a)))
        .filter(|(h, a)| early(ask, h) || (a.is_path() && h.entry.kind != "socket.connect_retry"))
        .collect();
    let (hit, answer) = *failed.iter().find(|(_, a)| a.is_path()).or_else(|| failed.first())?;
    let over = failed.iter().any(|(h, _)| !matches!(h.entry.kind.as_str(), "socket.connect_retry" | "socket.error"));
    let target = hit.get("addr").or(hit.get("peer")).map(network::host_part).filter(|a| !a.is_empty());
    let owner = target.and_then(|t| advertised(ask, t));
    let bad = owner.as_ref().and_then(|o| complaint(o.1, target.unwrap_or_default()));
    let exhausted = hit.entry.last.num("retry").zip(hit.entry.last.num("max")).is_some_and(|(r, m)| r >= m);
    let confidence = if over && (answer.is_path() || bad.is_some()) {
        Confidence::Certain
    } else if over || exhausted || bad.is_some() {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let who = hit.rank().map_or_else(|| if hit.host().is_empty() { "A rank".to_owned() } else { hit.host().to_owned() }, |r| format!("Rank {r}"));
    let whom = match (&owner, target) {
        (Some((owner, iface, _)), Some(t)) => format!("{owner} at {t} ({iface})"),
        (None, Some(t)) => t.to_owned(),
        _ => "a peer".to_owned(),
    };
    let mut why = answer.meaning().to_owned();
    if let (Some((_, iface, _)), Some(text)) = (&owner, bad) {
        why.push_str(&format!(" The peer advertises {iface}, which is {text}: its own neighbours may answer there, the peer does not."));
    }
    if !answer.is_path() {
        why.push_str(" If the rank behind that address has no log or its log ended first, look there.");
    }
    let hits: Vec<Hit<'_>> = failed.iter().map(|(h, _)| *h).collect();
    let mut f = start(confidence, Severity::Error, format!("{who} cannot connect to {whom}: {}", short(answer)), why, &hits);
    f.evidence.extend(owner.map(|o| o.2));
    f.fixes = advice::fixes(ask, target);
    f.avoid = advice::avoid();
    f.verify = advice::verify();
    Some(f)
}

fn short(answer: Answer) -> &'static str {
    match answer {
        Answer::NoRoute => "no route to host",
        Answer::Unreachable => "network unreachable",
        Answer::TimedOut => "timed out",
        Answer::Refused => "refused",
        Answer::Aborted => "nobody accepts there",
        Answer::Forbidden => "not permitted",
        Answer::WrongLink => "address not usable here",
    }
}

/// The process had not met its peers, so that the refusal cannot come from a peer's later end.
fn early(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    !network::bootstrapped(ask, hit.proc)
}

/// Retries that are more than an uneven start.
fn lasting(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    let last = hit.entry.last.num("retry").or(hit.num("retry"));
    // Up to 2.23 only every thousandth attempt is printed, and they come a millisecond apart.
    early(ask, hit) && last.map_or(hit.count() >= 10, |n| n >= 10)
}

/// Who advertises this address: (who, interface, its line).
fn advertised<'a>(ask: Ask<'a>, address: &str) -> Option<(String, &'a str, super::Evidence)> {
    let hit = ask.hits("bootstrap.using").into_iter().find(|h| h.get("ip") == Some(address))?;
    let who = hit.rank().map_or_else(|| hit.host().to_owned(), |r| format!("rank {r}"));
    Some((who, hit.entry.first.get("iface")?, hit.evidence()))
}

fn complaint(iface: &str, address: &str) -> Option<&'static str> {
    Link::of(iface).complaint().or_else(|| network::is_link_local(address).then_some("a link-local address"))
}

/// Several nodes, nobody past the bootstrap, and an advertised interface that leads nowhere.
fn dead_end(ask: Ask<'_>) -> Option<Finding> {
    if !ask.multi_node() || ask.procs().any(|(p, _)| network::bootstrapped(ask, p)) {
        return None;
    }
    let hits: Vec<Hit<'_>> = ask.hits("bootstrap.using").into_iter().filter(|h| complaint(h.get("iface").unwrap_or_default(), h.get("ip").unwrap_or_default()).is_some()).collect();
    let first = hits.first()?;
    let iface = first.get("iface").unwrap_or_default();
    let text = complaint(iface, first.get("ip").unwrap_or_default())?;
    let wifi = Link::of(iface) == Link::Wifi || Link::of(iface) == Link::Vpn;
    let confidence = if wifi { Confidence::Possible } else { Confidence::Likely };
    let title = format!("{} advertises {iface}, {text}", capital(&ranks_text(&ranks_of(&hits)), &hosts_of(&hits)));
    let why = format!(
        "The ranks run on several nodes and none got past the bootstrap. The address on {iface} ({}) is what the others must connect to, and {iface} is {text}.",
        first.get("ip").unwrap_or_default()
    );
    let mut f = start(confidence, Severity::Error, title, why, &hits);
    f.evidence.extend(ask.settings("NCCL_SOCKET_IFNAME").first().map(super::query::SettingHit::evidence));
    f.fixes = advice::fixes(ask, first.get("ip"));
    f.avoid = advice::avoid();
    f.verify = advice::verify();
    Some(f)
}

fn capital(ranks: &str, hosts: &[String]) -> String {
    match (ranks, hosts) {
        ("a process", [host, ..]) => host.clone(),
        _ => ranks.replacen('r', "R", 1),
    }
}

/// Every rank of a communicator over several hosts started and none met the others, without any error: packets are
/// dropped on the way. From 2.23.4 on `Init START` comes before the bootstrap.
fn silent(ask: Ask<'_>) -> Option<Finding> {
    if ask.version()? < (2, 23, 0) || troubled(ask) {
        return None;
    }
    let world = ask.job.world()?;
    let size = world.nranks? as usize;
    let stuck: Vec<_> = ask.views(world).filter(|(m, l)| l.saw(Stage::InitStart) && !network::bootstrapped(ask, m.proc)).collect();
    let hosts: BTreeSet<&str> = stuck.iter().map(|(m, _)| network::host_of(ask, m.proc)).collect();
    if size < 2 || stuck.len() != size || hosts.len() < 2 {
        return None;
    }
    let why = "All ranks are there and all stopped before they met: the bootstrap prints its timings as soon as it is over, and no rank has them. A firewall that drops packets between the nodes looks like this, and so does a rank whose output is still in a buffer or that is merely slow.";
    let mut f = Finding::new(RULE.cause.id, Severity::Warning, Confidence::Possible, format!("All {size} ranks started on {} nodes and none met the others", hosts.len()));
    f.why = why.to_owned();
    f.ranks = stuck.iter().filter_map(|(m, _)| m.rank).collect();
    f.hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (m, l) in &stuck {
        if seen.insert(network::host_of(ask, m.proc)) {
            f.evidence.extend(l.start.as_ref().map(|s| evidence(ask.job, m.rank, s)));
        }
    }
    f.evidence.truncate(4);
    let target = ask.hits("bootstrap.using").first().and_then(|h| h.get("ip").map(str::to_owned));
    f.fixes = advice::fixes(ask, target.as_deref());
    f.verify = advice::verify();
    Some(f)
}

/// Any warning or failure: then it is not silence.
fn troubled(ask: Ask<'_>) -> bool {
    let fatal = [
        "app.",
        "gpu.",
        "torch.watchdog",
        "launch",
        "kernel.",
        "socket.wrong",
        "socket.accept_failed",
        "bootstrap.truncated",
        "bootstrap.rank",
        "version.",
        "warn.unknown",
        "init.backtrace",
    ];
    ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| fatal.iter().any(|f| e.kind.starts_with(f))))
}
