//! What rules ask of the hosts' facts: evidence, whose facts they are, and fixes in each node's own names.

use super::finding::{Evidence, Fix};
use super::query::Ask;
use super::remedy::sh;
use super::waiting;
use crate::digest::{Gid, Line};
use crate::job::{Between, NodeFacts, Rail};
use std::collections::BTreeSet;

/// A fact's line as evidence.
pub fn evidence(ask: Ask<'_>, line: &Line) -> Evidence {
    Evidence { file: ask.job.path(line.stream).to_owned(), line: line.line, offset: line.offset, rank: None, text: line.text.clone() }
}

/// The facts of the host of a process.
pub fn of_proc(ask: Ask<'_>, proc: usize) -> Option<&NodeFacts> {
    ask.job.facts.of(ask.job.procs[proc].host_index?)
}

/// The facts of a host by the name that the library prints.
pub fn of_host<'a>(ask: Ask<'a>, host: &str) -> Option<&'a NodeFacts> {
    let index = ask.job.hosts.iter().position(|h| h.name == host).or_else(|| ask.job.procs.iter().find(|p| p.host == host)?.host_index)?;
    ask.job.facts.of(index)
}

/// The facts of every node of the job, or of nodes that none of the job's hosts could be told to be.
pub fn nodes(ask: Ask<'_>) -> impl Iterator<Item = &NodeFacts> {
    ask.job.facts.nodes.iter()
}

/// Ports of a device over all nodes.
pub fn rails(ask: Ask<'_>) -> Vec<Rail<'_>> {
    nodes(ask).flat_map(NodeFacts::rails).collect()
}

/// Facts of the only node: those of the job's host, and those that nothing names.
pub fn single(ask: Ask<'_>) -> Vec<&NodeFacts> {
    if ask.multi_node() { Vec::new() } else { nodes(ask).collect() }
}

/// What stands between the job's GPUs, where they share a host that told of its PCIe bridges.
pub fn between(ask: Ask<'_>) -> Option<Between<'_>> {
    let buses = waiting::local_buses(ask);
    single(ask).into_iter().find_map(|n| n.between(&buses))
}

/// `share the PCIe switch at 3b:00.0`
pub fn joined(between: &Between<'_>) -> String {
    match between.shared {
        Some(bridge) => format!("share the PCIe switch at {}", bridge.device),
        None => "share no PCIe switch, so what one sends the other passes the processor".to_owned(),
    }
}

/// Names of the RDMA devices that any host's facts show.
pub fn devices(ask: Ask<'_>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    nodes(ask).flat_map(|n| &n.facts.hcas).map(|h| h.name.as_str()).filter(|n| seen.insert(*n)).collect()
}

/// Every host of the job has facts, and they say that it has no RDMA device: the lines.
pub fn without_hca(ask: Ask<'_>) -> Option<Vec<&Line>> {
    let hosts = ask.job.hosts.len();
    let told: Vec<&Line> = (0..hosts).filter_map(|h| ask.job.facts.of(h)).filter(|n| n.facts.hcas.is_empty()).filter_map(|n| n.facts.no_hca.as_ref()).collect();
    (hosts > 0 && told.len() == hosts && devices(ask).is_empty()).then_some(told)
}

/// The data path of every node on the network that they share, in each node's own names, the hosts at fault first:
/// short reports show one command. `None` without facts.
pub fn pins(ask: Ask<'_>, title: &str, when: &str, at_fault: &[String]) -> Option<Fix> {
    let mut fabric = ask.job.facts.fabric();
    fabric.sort_by_key(|rail| !at_fault.contains(&rail.node.name));
    if fabric.is_empty() {
        return None;
    }
    let commands = fabric.iter().map(|rail| format!("export {}   # on {}", assignments(&rail.exports()), place(rail.node))).collect();
    Some(Fix {
        title: title.to_owned(),
        when: when.to_owned(),
        commands,
        needs: "nothing".to_owned(),
        cost: "With NCCL_NET=IB a job without RDMA fails at start instead of crawling.".to_owned(),
        undo: "unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME NCCL_IB_HCA NCCL_NET VLLM_HOST_IP".to_owned(),
    })
}

/// A node as a comment behind a command names it: in one line.
pub fn place(node: &NodeFacts) -> String {
    node.title().replace(char::is_control, " ")
}

/// `A=1 B=2`
fn assignments(list: &[(&'static str, String)]) -> String {
    list.iter().map(|(name, value)| format!("{name}={}", sh(value))).collect::<Vec<_>>().join(" ")
}

/// `index 3, ::ffff:192.0.2.7, RoCE v2 of enp1s0f0np0`
pub fn gid_text(gid: &Gid) -> String {
    let kind = match gid.kind {
        Some(crate::digest::GidKind::V1) => ", RoCE v1",
        Some(crate::digest::GidKind::V2) => ", RoCE v2",
        None => "",
    };
    let of = if gid.netdev.is_empty() { String::new() } else { format!(" of {}", gid.netdev) };
    format!("index {} is {}{kind}{of}", gid.index, gid.gid)
}
