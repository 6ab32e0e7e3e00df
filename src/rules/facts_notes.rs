//! What the notes say of the hosts' facts: whose they are, what they show where no log speaks, what was not kept.

use super::finding::Finding;
use super::query::Ask;
use crate::digest::Naming;
use crate::job::NodeFacts;

/// Most hosts that are named one by one.
const MOST: usize = 6;

/// Adds the notes.
pub fn write(ask: Ask<'_>, findings: &[Finding], notes: &mut Vec<String>) {
    // A result at the end of a test is no account of a host.
    let nodes: Vec<&NodeFacts> = ask.job.facts.nodes.iter().filter(|n| !n.facts.only_results()).collect();
    if nodes.is_empty() {
        return;
    }
    let hosts = ask.job.hosts.len();
    let list: Vec<String> = nodes.iter().take(MOST).map(|n| format!("{}{}", n.title(), how(n))).collect();
    let more = if nodes.len() > MOST { format!(" and {} more", nodes.len() - MOST) } else { String::new() };
    notes.push(format!("Facts of {} were read: {}{more}.", if nodes.len() == 1 { "one host".to_owned() } else { format!("{} hosts", nodes.len()) }, list.join(", ")));
    let lost: Vec<String> = nodes.iter().filter(|n| n.host.is_none() && hosts > 0).map(|n| n.title()).take(MOST).collect();
    if !lost.is_empty() {
        notes.push(format!(
            "Nothing tells which host of the job {} is, so these facts count only where it does not matter. Name the files after the hosts, or collect them with `ncclog collect`.",
            lost.join(", ")
        ));
    }
    let dropped: u64 = nodes.iter().map(|n| n.facts.dropped).sum();
    if dropped > 0 {
        notes.push(format!("{dropped} facts of hosts were beyond the bounds and not kept."));
    }
    measured(ask, notes);
    let only_facts = ask.procs().all(|(_, p)| !p.nccl && p.log.ledger.iter().all(|e| ["host.", "gpu.", "rocm.gpu_name", "kernel."].iter().any(|k| e.kind.starts_with(k))));
    if only_facts && findings.is_empty() {
        alone(&nodes, notes);
    }
}

/// Bandwidths far below what the link should give.
fn measured(ask: Ask<'_>, notes: &mut Vec<String>) {
    for node in &ask.job.facts.nodes {
        for b in node.facts.bandwidths.iter().filter(|b| !b.device.is_empty() && b.size >= 65_536) {
            let Some(rate) = node.rail(&b.device, None).map(|r| r.speed()).filter(|r| *r > 0) else { continue };
            if b.gbps < rate as f64 * 0.6 {
                notes.push(format!(
                    "On {} {} reached {:.0} Gb/s over {}, whose port gives {rate} Gb/s: look at its MTU, the PCIe width and speed of its slot, and the queue pairs of the test (-q).",
                    node.title(),
                    b.tool,
                    b.gbps,
                    b.device
                ));
            }
        }
    }
    let slowest = ask.job.facts.fabric().iter().map(crate::job::Rail::speed).filter(|s| *s > 0).min();
    if let Some(rate) = slowest.filter(|_| ask.multi_node()) {
        notes.extend(collective(ask, rate));
    }
}

/// The result of nccl-tests is far below what one port of the fabric gives.
fn collective(ask: Ask<'_>, rate: u64) -> Option<String> {
    /// Smaller messages never fill a link.
    const LARGE: u64 = 64 << 20;
    let tests = || ask.job.facts.nodes.iter().flat_map(|n| &n.facts.bandwidths).filter(|b| b.tool.starts_with("nccl-tests"));
    if let Some(test) = tests().filter(|b| b.size >= LARGE).max_by_key(|b| b.size) {
        // What is not summed up may have to share a port with the other GPUs of its node.
        let least = if test.tool.ends_with(" of a sum") { 0.4 } else { 0.1 };
        return (test.gbps < rate as f64 * least).then(|| {
            format!(
                "With its largest message ({} MiB) the test reached {:.1} Gb/s of bus bandwidth where one port of the fabric gives {rate} Gb/s: see which network and which HCA the log names, and whether GPU Direct RDMA is on.",
                test.size >> 20,
                test.gbps
            )
        });
    }
    let test = tests().find(|b| b.size == 0 && b.gbps < rate as f64 * 0.2)?;
    Some(format!(
        "The test's average bus bandwidth is {:.1} Gb/s where one port of the fabric gives {rate} Gb/s; averages over small messages are low, so look at the largest.",
        test.gbps
    ))
}

fn how(node: &NodeFacts) -> &'static str {
    match node.naming {
        Naming::Marker | Naming::Unknown => "",
        Naming::Prompt => " (by its prompt)",
        Naming::Wrapper => " (by the prefix of its lines)",
        Naming::File => " (by the name or content of its file)",
        Naming::OnlyHost => " (the only host)",
        Naming::Matched => " (by its addresses or devices)",
    }
}

/// Facts without a log prove no cause; what stands out is said, and what would decide.
fn alone(nodes: &[&NodeFacts], notes: &mut Vec<String>) {
    for node in nodes {
        let down: Vec<&str> = node.rails().iter().filter(|r| r.is_up() == Some(false)).map(|r| r.hca).collect();
        // Spare ports are often down; that all are is worth a word.
        if !down.is_empty() && down.len() == node.rails().len() {
            notes.push(format!("On {} no RDMA port is active ({}); a job over several nodes would go over TCP from there.", node.title(), down.join(", ")));
        }
    }
    let mtus: std::collections::BTreeSet<u32> =
        nodes.iter().flat_map(|n| n.rails()).filter(|r| r.is_up() == Some(true)).filter_map(|r| r.port.active_mtu.as_ref()).map(|m| m.value).collect();
    if mtus.len() > 1 {
        notes.push(format!("The active RDMA ports have different MTUs ({}).", mtus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")));
    }
    notes.push("Facts of hosts alone prove no cause: give the NCCL log of the job beside them.".to_owned());
}
