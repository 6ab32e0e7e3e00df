//! tcp-fallback: Nodes exchange data over TCP instead of RDMA.

mod advice;
mod reason;
#[cfg(test)]
mod tests;

use super::facts;
use super::finding::{Confidence, Evidence, Finding, Severity};
use super::network::{self, Choice, Interface, Link, names_text};
use super::query::{Ask, capital, evidence, ranges};
use super::{Cause, Rule};
use crate::job::Comm;
use reason::{Kind, Reason};
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "tcp-fallback", aliases: &[], summary: "Nodes exchange data over TCP instead of RDMA.", explanation: include_str!("../tcp_fallback.md") },
    check,
    explains: &["collective-timeout", "stall", "gdr-disabled", "fabric-split", "ib-completion-error"],
    only_alone: false,
};

const PATH: [&str; 3] = ["q-cluster-or-single-host-p2p", "q-rocev2-socket-or-qp-error", "sol-connectx7-rocev2-hca-binding"];

/// A communicator over several nodes with ranks on NET/Socket.
struct Case<'a> {
    ask: Ask<'a>,
    /// Processes on NET/Socket.
    procs: BTreeSet<usize>,
    /// Ranks on NET/Socket.
    ranks: Vec<u32>,
    /// Ranks on another network, with its name.
    others: Option<(&'a str, Vec<u32>)>,
    /// `2 nodes`
    nodes: String,
    reason: Reason<'a>,
    carriers: Vec<Interface<'a>>,
    /// Lines that show the network.
    proof: Vec<Evidence>,
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let mut best: Option<Case<'_>> = None;
    for comm in ask.spanning() {
        let choice = network::choice(ask, comm);
        if !choice.keys().any(|n| network::is_socket(n)) {
            continue;
        }
        let case = case_of(ask, comm, &choice);
        // One mixed communicator is worse than any number of slow ones; else the largest speaks for all.
        if best.as_ref().is_none_or(|b| b.others.is_none() && case.others.is_some()) {
            best = Some(case);
        }
    }
    let case = best.or_else(|| by_interfaces(ask));
    case.map(|c| c.finding()).filter(|f| f.confidence < Confidence::Possible || ran(ask)).into_iter().collect()
}

/// Ranks met, or nothing kept them from it. A network that was merely chosen before the bootstrap failed carried
/// nothing, and to guess that it is a slow one helps nobody.
fn ran(ask: Ask<'_>) -> bool {
    ask.procs().any(|(p, _)| network::bootstrapped(ask, p))
        || (ask.under("bootstrap.").iter().all(|h| h.entry.kind == "bootstrap.using") && ask.under("socket.").iter().all(|h| h.entry.kind == "socket.using"))
}

fn case_of<'a>(ask: Ask<'a>, comm: &'a Comm, choice: &Choice<'a>) -> Case<'a> {
    let mut procs = BTreeSet::new();
    let mut ranks = Vec::new();
    let mut proof = Vec::new();
    let mut others: Option<(&str, Vec<u32>)> = None;
    let mut hosts = BTreeSet::new();
    for (net, members) in choice {
        let socket = network::is_socket(net);
        for (member, sample) in members {
            let host = network::host_of(ask, member.proc);
            if hosts.insert((socket, host)) && proof.len() < 4 {
                proof.push(evidence(ask.job, member.rank, sample));
            }
            if socket {
                procs.insert(member.proc);
                ranks.extend(member.rank);
            } else {
                others.get_or_insert((net, Vec::new())).1.extend(member.rank);
            }
        }
    }
    let seen = comm.members.iter().map(|m| network::host_of(ask, m.proc)).filter(|h| !h.is_empty()).collect::<BTreeSet<_>>().len();
    let count = comm.nnodes.map_or(seen, |n| (n as usize).max(seen));
    let nodes = if count > 1 { format!("{count} nodes") } else { "nodes".to_owned() };
    let channel = ask.views(comm).flat_map(|(m, l)| l.channels.iter().map(move |c| (m, c))).find(|(_, c)| network::is_socket(&c.net));
    proof.extend(channel.map(|(m, c)| evidence(ask.job, m.rank, &c.first)));
    let reason = Reason::find(ask, &procs, others.is_some());
    let carriers = network::carriers(ask, &procs);
    Case { ask, procs, ranks, others, nodes, reason, carriers, proof }
}

/// The lines that name the network are cut off, but the list of TCP interfaces, which is printed only where IB was
/// not taken, stands in a job over several nodes.
fn by_interfaces(ask: Ask<'_>) -> Option<Case<'_>> {
    if !ask.multi_node()
        || ask.has("net.using")
        || ask.has("net.plugin_assigned")
        || ask.has("net.none")
        || ask.has("net.not_found")
        || ask.job.procs.iter().flat_map(|p| &p.log.comms).flat_map(|c| &c.channels).any(|c| !c.net.is_empty())
    {
        return None;
    }
    // Up to 2.4 the list was printed always.
    if ask.version().is_some_and(|v| v < (2, 5, 0)) {
        return None;
    }
    let hits = ask.hits("socket.using");
    let procs: BTreeSet<usize> = hits.iter().map(|h| h.proc).collect();
    if procs.is_empty()
        || ask.procs().any(|(p, _)| {
            !procs.contains(&p) && network::hits_of(ask, "ib.using", &BTreeSet::from([p])).iter().any(|h| !network::devices(h.get("list").unwrap_or_default()).is_empty())
        })
    {
        return None;
    }
    let ranks = super::query::ranks_of(&hits);
    let reason = Reason::find(ask, &procs, false);
    let carriers = network::carriers(ask, &procs);
    let proof = hits.iter().take(2).map(super::query::Hit::evidence).collect();
    Some(Case { ask, procs, ranks, others: None, nodes: format!("{} nodes", ask.job.hosts.len().max(2)), reason, carriers, proof })
}

impl Case<'_> {
    fn finding(&self) -> Finding {
        let bare = self.has_no_rdma();
        let sign = reason::rdma_sign(self.ask, &self.procs).filter(|_| !bare);
        let (severity, confidence) = self.grade(sign.is_some());
        let mut f = Finding::new(RULE.cause.id, severity, confidence, self.title());
        f.why = self.why(sign.as_ref().map(|(text, _)| text.as_str()));
        f.ranks.clone_from(&self.ranks);
        f.hosts = network::hosts_of(self.ask, &self.procs);
        f.evidence.clone_from(&self.reason.evidence);
        f.evidence.truncate(3);
        f.evidence.extend(self.proof.iter().cloned());
        f.evidence.extend(sign.map(|(_, e)| e));
        f.evidence.extend(facts::without_hca(self.ask).filter(|_| bare).into_iter().flatten().take(2).map(|l| facts::evidence(self.ask, l)));
        f.evidence.truncate(6);
        f.path = PATH.to_vec();
        f.fixes = advice::fixes(self.ask, &self.reason, &self.carriers, &f.hosts);
        f.avoid = advice::avoid();
        f.verify = advice::verify(self.ask, &self.reason, &self.carriers);
        f
    }

    /// An interface that should not carry data, with the complaint.
    fn poor(&self) -> Option<(&str, &'static str)> {
        self.carriers.iter().find_map(|c| {
            let complaint = Link::of(c.name).complaint().or_else(|| network::is_link_local(c.address).then_some("a link-local address"));
            complaint.map(|text| (c.name, text))
        })
    }

    fn slow(&self) -> bool {
        let gigabit_fact = || {
            let mut interfaces = facts::nodes(self.ask).flat_map(|n| &n.facts.interfaces);
            interfaces.any(|i| i.speed.as_ref().is_some_and(|s| s.value <= 1000) && self.carriers.iter().any(|c| c.name == i.name))
        };
        let gigabit = |kind: &str| {
            self.ask.hits(kind).iter().any(|h| h.num("speed").is_some_and(|s| (1..=1000).contains(&s)) && h.get("iface").is_none_or(|i| self.carriers.iter().any(|c| c.name == i)))
        };
        gigabit("net.speed") || gigabit_fact()
    }

    /// By the facts of every host there is no RDMA device, and nobody asked for one: TCP is all there is.
    fn has_no_rdma(&self) -> bool {
        let asked = self.ask.setting_where("NCCL_IB_HCA", |v| !network::wanted(v).is_empty()).is_some() || self.ask.setting_where("NCCL_NET", |v| v.starts_with("IB")).is_some();
        !asked && self.others.is_none() && facts::without_hca(self.ask).is_some() && network::seen_devices(self.ask).is_empty()
    }

    fn grade(&self, rdma: bool) -> (Severity, Confidence) {
        if self.others.is_some() {
            return (Severity::Error, Confidence::Certain);
        }
        if self.has_no_rdma() {
            return (Severity::Info, Confidence::Certain);
        }
        match self.reason.kind {
            Kind::Asked(_) | Kind::Chosen(_) => (Severity::Info, Confidence::Certain),
            Kind::Disabled if !network::seen_devices(self.ask).is_empty() => (Severity::Warning, Confidence::Certain),
            Kind::Disabled => (Severity::Warning, Confidence::Likely),
            _ if rdma => (Severity::Warning, Confidence::Certain),
            _ if self.poor().is_some() || self.slow() => (Severity::Warning, Confidence::Likely),
            _ if self.proof.iter().all(|e| e.text.contains("NET/Socket : Using")) => (Severity::Warning, Confidence::Likely),
            _ => (Severity::Warning, Confidence::Possible),
        }
    }

    fn over(&self) -> String {
        let names: Vec<&str> = self.carriers.iter().map(|c| c.name).collect();
        if names.is_empty() { String::new() } else { format!(" on {}", names_text(&names)) }
    }

    fn title(&self) -> String {
        if let Some((net, ranks)) = &self.others {
            let hosts = network::hosts_of(self.ask, &self.procs);
            let place = if hosts.is_empty() { String::new() } else { format!(" ({})", names_text(&hosts.iter().map(String::as_str).collect::<Vec<_>>())) };
            return format!("{} {} {net} but {}{place} {} TCP: {}", capital(&many(ranks)), verb(ranks), many(&self.ranks), verb(&self.ranks), self.reason.short());
        }
        format!("Data between {} goes over TCP{}: {}", self.nodes, self.over(), self.reason.short())
    }

    fn why(&self, sign: Option<&str>) -> String {
        let mut why = Vec::new();
        if let Some((net, ranks)) = &self.others {
            why.push(format!(
                "{} of one communicator chose {net}, {} chose NET/Socket. The two cannot talk to each other, so the job stops while the connections are made.",
                capital(&many(ranks)),
                many(&self.ranks)
            ));
        } else {
            why.push(format!(
                "The communicator spans {} and its data goes over NET/Socket{}, which costs the processors' time and is often 10 to 20 times slower than RDMA.",
                self.nodes,
                self.over()
            ));
        }
        why.push(self.reason.sentence(self.ask));
        if let Some((name, complaint)) = self.poor() {
            why.push(format!("{name} is {complaint}."));
        }
        match (sign, &self.reason.kind) {
            (_, Kind::Asked(_) | Kind::Chosen(_)) => {}
            _ if self.has_no_rdma() => why.push("By the facts of all hosts none of them has an RDMA device, so TCP is all there is.".to_owned()),
            (Some(sign), _) => why.push(format!("RDMA was meant or is there: {sign}.")),
            (None, Kind::Disabled) => why.push("It is mostly left over from somebody's workaround. If these nodes have no RDMA, TCP is all there is and this can stay.".to_owned()),
            (None, _) => why.push(
                "Nothing else in the log speaks of RDMA; a cloud VM may have none. `ls /sys/class/infiniband` on each node decides: empty means that TCP is all there is."
                    .to_owned(),
            ),
        }
        why.join(" ")
    }
}

/// `rank 3`, `ranks 0-3`; without numbers `some ranks`.
fn many(ranks: &[u32]) -> String {
    match ranks {
        [] => "some ranks".to_owned(),
        [one] => format!("rank {one}"),
        _ => format!("ranks {}", ranges(ranks)),
    }
}

fn verb(ranks: &[u32]) -> &'static str {
    if ranks.len() == 1 { "uses" } else { "use" }
}
