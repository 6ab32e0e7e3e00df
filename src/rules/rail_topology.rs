//! rail-topology: Queue pairs fail only between rails that are not connected to each other.

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::ib::{self, Gid};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "rail-topology",
        aliases: &[],
        summary: "Queue pairs fail only between rails that are not connected to each other.",
        explanation: include_str!("rail_topology.md"),
    },
    check,
    explains: &["roce-qp-gid-mtu", "ib-completion-error", "bootstrap-unreachable", "p2p-iommu-acs-hang", "peer-crash", "missing-rank", "collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let unlike = ask.hits("ib.incompatible");
    if !unlike.is_empty() {
        return vec![link_types(ask, &unlike)];
    }
    crossing(ask).into_iter().collect()
}

/// RoCE on one end, InfiniBand on the other.
fn link_types(ask: Ask<'_>, hits: &[Hit<'_>]) -> Finding {
    let title = format!("{}: HCAs of different link types were joined (RoCE and InfiniBand)", subject(hits));
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, title);
    finding.why = String::from(
        "NCCL refuses to connect or merge devices of which one is RoCE and the other InfiniBand. The nodes list their HCAs in another order, one node lacks a device, or devices of both kinds were to be used as one.",
    );
    fill(&mut finding, hits);
    let devices: Vec<String> = ib::used(&ask.hits("ib.using")).into_iter().map(|d| d.name).collect();
    finding.fixes = vec![Fix {
        title: "Choose devices of one link type on every node".to_owned(),
        when: "The nodes hold both kinds.".to_owned(),
        commands: vec![format!("export NCCL_IB_HCA==$DEVICES_OF_ONE_TYPE   # out of {}", if devices.is_empty() { "ibv_devinfo's list".to_owned() } else { devices.join(", ") })],
        needs: "nothing".to_owned(),
        cost: "None, unless both networks were meant to carry data.".to_owned(),
        undo: "unset NCCL_IB_HCA".to_owned(),
    }];
    finding.verify = vec!["`NET/IB : Using` lists the same link type for the same index on all nodes.".to_owned()];
    finding
}

/// A failing pair with what is known of it.
struct Pair<'a> {
    hit: Hit<'a>,
    local: Gid,
    remote: Gid,
}

/// All failing pairs cross subnets, although the failing hosts have a device in the other subnet too: equal rails
/// would have reached each other.
fn crossing(ask: Ask<'_>) -> Option<Finding> {
    let pairs = pairs(ask);
    let crosses = |p: &Pair<'_>| p.local.subnet().zip(p.remote.subnet()).is_some_and(|(a, b)| a != b);
    if pairs.is_empty() || !pairs.iter().all(crosses) {
        return None;
    }
    let known = known_subnets(ask, &pairs);
    let proven: Vec<&Pair<'_>> = pairs.iter().filter(|p| p.remote.subnet().is_some_and(|s| known.contains(&(p.hit.host(), s)))).collect();
    let first = proven.first()?;
    let hits: Vec<Hit<'_>> = proven.iter().map(|p| p.hit).collect();
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, Confidence::Likely, format!("{}: queue pairs fail between different rails", subject(&hits)));
    finding.why = format!(
        "Every failing pair joins two subnets (such as {} and {}), although this node has a device in the other subnet as well: NCCL connects one rail with another, and the rails have no path between them. A missing route or gateway between the subnets would look the same.",
        first.local, first.remote
    );
    fill(&mut finding, &hits);
    finding.evidence.extend(ask.settings("NCCL_CROSS_NIC").iter().take(1).map(super::query::SettingHit::evidence));
    finding.fixes = fixes();
    finding.avoid = vec!["Longer RDMA time-outs: there is no path to wait for.".to_owned(), "Other GID indexes: the addresses are right.".to_owned()];
    finding.verify = vec!["ib_write_bw between device n of one node and device m of the other, for all n and m: only equal rails pass, or all of them.".to_owned()];
    Some(finding)
}

fn pairs(ask: Ask<'_>) -> Vec<Pair<'_>> {
    let mut list = Vec::new();
    for hit in ask.any_of(&["ib.modify_qp", "ib.modify_qp_retry", "ib.completion"]) {
        if hit.entry.kind == "ib.completion" && hit.num("status") != Some(12) {
            continue;
        }
        for sample in ib::records(&hit) {
            if let (Some(local), Some(remote)) = (sample.get("lgid").and_then(Gid::parse), sample.get("rgid").and_then(Gid::parse)) {
                list.push(Pair { hit, local, remote });
            }
        }
    }
    list
}

/// Subnets that a host has a device in: (host, subnet).
fn known_subnets<'a>(ask: Ask<'a>, pairs: &[Pair<'a>]) -> BTreeSet<(&'a str, u64)> {
    let printed = ask.hits("ib.qp_info").into_iter().filter_map(|h| Some((h.host(), Gid::decode(h.get("gid")?)?.subnet()?))).collect::<Vec<_>>();
    pairs.iter().filter_map(|p| Some((p.hit.host(), p.local.subnet()?))).chain(printed).collect()
}

fn fill(finding: &mut Finding, hits: &[Hit<'_>]) {
    finding.ranks = ranks_of(hits);
    finding.hosts = hosts_of(hits);
    finding.evidence = hits.iter().take(5).map(Hit::evidence).collect::<Vec<Evidence>>();
}

fn subject(hits: &[Hit<'_>]) -> String {
    let ranks = ranks_of(hits);
    if ranks.is_empty() { hosts_of(hits).first().cloned().unwrap_or_else(|| "a process".to_owned()) } else { ranks_text(&ranks) }
}

/// Rings and meshes of direct cables: each cable is a subnet, and a device reaches one neighbour.
pub(super) fn switchless() -> Fix {
    Fix {
        title: "Choose for each peer the device whose cable leads there".to_owned(),
        when: "The nodes are joined without a switch, every cable being a network of its own (three DGX Sparks in a ring); NCCL 2.30.7 or newer.".to_owned(),
        commands: vec!["export NCCL_IB_SUBNET_AWARE_ROUTING=1 NCCL_IB_MERGE_NICS=0   # on every node".to_owned()],
        needs: "nothing".to_owned(),
        cost: "Two ports are no longer used as one.".to_owned(),
        undo: "unset NCCL_IB_SUBNET_AWARE_ROUTING NCCL_IB_MERGE_NICS".to_owned(),
    }
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Keep every connection on its rail".to_owned(),
            when: "The rails are separate networks by design.".to_owned(),
            commands: vec!["export NCCL_CROSS_NIC=0".to_owned(), "export NCCL_IB_HCA==$DEVICES   # in the order of the rails, the same on all nodes".to_owned()],
            needs: "nothing".to_owned(),
            cost: "Rings may not change rails; with separate rails they cannot anyway.".to_owned(),
            undo: "unset NCCL_CROSS_NIC NCCL_IB_HCA".to_owned(),
        },
        switchless(),
        Fix {
            title: "Connect the rails".to_owned(),
            when: "They were meant to be one network: a cable is in the wrong port, or the routes between the subnets are missing.".to_owned(),
            commands: vec!["ip route get $ADDRESS_OF_THE_OTHER_RAIL   # from each interface; then mend cabling, VLAN or routes".to_owned()],
            needs: "root".to_owned(),
            cost: "Work on the network.".to_owned(),
            undo: String::new(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn line(local: &str, remote: &str, hca: &str) -> String {
        format!(
            "hosta:7:8 [0] misc/ibvwrap.cc:301 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev {hca}:1, curr state INIT, next state RTR, local GID index 3, local GID {local}, remote GID {remote}\n"
        )
    }

    fn findings(text: &str) -> Vec<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings
    }

    #[test]
    fn pairs_that_cross_known_rails() {
        let text = line("::ffff:10.1.0.1", "::ffff:10.1.1.2", "mlx5_0") + &line("::ffff:10.1.1.1", "::ffff:10.1.0.2", "mlx5_1");
        let list = findings(&text);
        assert_eq!(list[0].id, "rail-topology");
        assert!(list.iter().any(|f| f.id == "roce-qp-gid-mtu" && f.caused_by == Some("rail-topology")));
    }

    #[test]
    fn one_rail_or_one_unknown_subnet_is_no_rail_matter() {
        let same = line("::ffff:10.1.0.1", "::ffff:10.1.0.2", "mlx5_0");
        assert!(findings(&same).iter().all(|f| f.id != "rail-topology"));
        let unknown = line("::ffff:10.1.0.1", "::ffff:10.1.1.2", "mlx5_0");
        assert!(findings(&unknown).iter().all(|f| f.id != "rail-topology"));
    }

    #[test]
    fn unlike_link_types_are_named() {
        let list = findings(
            "hosta:7:8 [0] transport/net_ib.cc:900 NCCL WARN NET/IB : Can't connect net devices with different link_layer. i=0 remMeta.ndevs=1 link_layer=2 rem_link_layer=1\n",
        );
        assert_eq!(list.first().map(|f| f.id), Some("rail-topology"));
    }
}
