//! What pins a node's data path to its own names, by the facts of that very node.

use super::{Block, Line, Sheet, Value};
use crate::job::{Facts, Job, NodeFacts, Rail};
use crate::rules::query::number;

/// From this version on NCCL looks for the right GID by itself.
pub const FINDS_GID: (u32, u32, u32) = (2, 21, 0);

/// The port of a node on the fabric that all nodes share.
pub fn rail<'a>(facts: &'a Facts, node: &NodeFacts) -> Option<Rail<'a>> {
    facts.fabric().into_iter().find(|r| std::ptr::eq(r.node, node))
}

/// The lines of a node. `old` says that the library is known not to find the GID by itself.
pub fn lines(rail: &Rail<'_>, old: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = rail.exports().into_iter().map(|(name, value)| Line::set(name, value, note(name))).collect();
    if old && rail.is_roce() {
        lines.push(rail.gid_export().map_or_else(|| Line::open("NCCL_IB_GID_INDEX", rule("NCCL_IB_GID_INDEX"), ""), |(name, value)| Line::set(name, value, note(name))));
    }
    for line in lines.iter_mut().filter(|l| matches!(l.value, Value::Set(_))) {
        line.from_facts = true;
    }
    lines
}

/// What a variable is for.
fn note(name: &str) -> &'static str {
    match name {
        "NCCL_SOCKET_IFNAME" => "the interface; = makes it the exact name",
        "GLOO_SOCKET_IFNAME" => "the same for PyTorch's Gloo",
        "NCCL_IB_HCA" => "the RDMA device behind it and its port",
        "NCCL_NET" => "a node without RDMA fails at start instead of crawling",
        "VLLM_HOST_IP" => "this node's address there; Ray: --node-ip-address",
        "NCCL_IB_GID_INDEX" => "RoCE v2 with that address on this node, now; it moves with boots, links and addresses, look again after each",
        _ => "",
    }
}

/// How to find a value that no fact gives.
pub fn rule(name: &str) -> &'static str {
    match name {
        "NCCL_SOCKET_IFNAME" | "GLOO_SOCKET_IFNAME" => "this node's interface on the fabric, as `ip -br addr` shows it",
        "NCCL_IB_HCA" => "this node's RDMA device behind that interface, as `rdma link show` tells",
        "VLLM_HOST_IP" => "this node's address on the fabric, as `ip -br addr` shows it",
        "NCCL_IB_GID_INDEX" => {
            "the index in this node's own `show_gids` whose row is v2, of the fabric's interface, with its IPv4 address; another node's number means something else here"
        }
        _ => "",
    }
}

/// Whether the library is known to be too old to find the GID by itself.
pub fn is_old(job: &Job) -> bool {
    let versions: Vec<_> = job.versions.iter().filter_map(|v| number(v)).collect();
    versions.iter().any(|v| *v < FINDS_GID)
}

/// The sheet of all nodes on the fabric.
pub fn pins(job: &Job) -> Sheet {
    let mut sheet = Sheet::default();
    let (old, known) = (is_old(job), job.versions.iter().any(|v| number(v).is_some()));
    for node in &job.facts.nodes {
        let Some(rail) = rail(&job.facts, node) else {
            sheet.tail.push(format!("{}: its facts show no RDMA port on the network that the others share", node.title()));
            continue;
        };
        let lines = lines(&rail, old);
        let names = lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(" ");
        let mut after = Vec::new();
        if !old && let Some((name, value)) = rail.gid_export() {
            let when = if known { "NCCL finds the GID by itself here; where it chooses wrongly" } else { "only for NCCL before 2.21, which does not find the GID by itself" };
            after.push(format!("{when}: export {name}={value}   (this node's RoCE v2 entry; it moves with boots, links and addresses)"));
        }
        after.push(format!("to take it back: unset {names}"));
        let address = rail.address().map(|(ip, _)| ip.to_string());
        sheet.blocks.push(Block { host: Some(node.title()), address, lines, after, ..Block::default() });
    }
    for (index, host) in job.hosts.iter().enumerate() {
        if job.facts.of(index).is_none() {
            sheet.tail.push(format!("{}: no facts; run there: ncclog collect -o {}.txt", host.name, super::short(&host.name)));
        }
    }
    sheet
}
