//! What to do where ranks cannot reach each other.

use crate::rules::finding::Fix;
use crate::rules::network::{self, Link};
use crate::rules::query::Ask;
use crate::rules::remedy::sh;

/// Fixes, likeliest first.
pub fn fixes(ask: Ask<'_>, target: Option<&str>) -> Vec<Fix> {
    vec![interface(ask, target), firewall(target)]
}

/// Name an interface that all nodes share.
pub fn interface(ask: Ask<'_>, target: Option<&str>) -> Fix {
    let good = other_interface(ask, target);
    let name = good.as_deref().map_or("<interface that all nodes share>".into(), sh);
    Fix {
        title: "Name the interface that all nodes share".to_owned(),
        when: "The advertised interface is not the one that leads to the other nodes, or its name differs between hosts.".to_owned(),
        commands: vec![
            "ip -br addr   # on every node: which interface has an address in the common network".to_owned(),
            format!("export NCCL_SOCKET_IFNAME={name} GLOO_SOCKET_IFNAME={name}   # or exclude: NCCL_SOCKET_IFNAME=^docker,lo,virbr"),
        ],
        needs: "nothing".to_owned(),
        cost: String::new(),
        undo: "unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME".to_owned(),
    }
}

/// An interface of the log that is not a bridge or the like and is not the failing one.
fn other_interface(ask: Ask<'_>, target: Option<&str>) -> Option<String> {
    let fits = |name: &str, address: &str| Link::of(name).complaint().is_none() && !network::is_link_local(address) && Some(address) != target;
    for h in ask.any_of(&["bootstrap.using", "socket.using"]) {
        let listed = h.entry.first.get("list").map(network::interfaces).unwrap_or_default();
        if let Some(i) = listed.iter().find(|i| fits(i.name, i.address)) {
            return Some(i.name.to_owned());
        }
        if let (Some(iface), Some(ip)) = (h.get("iface"), h.get("ip"))
            && target.is_some()
            && fits(iface, ip)
        {
            return Some(iface.to_owned());
        }
    }
    None
}

fn firewall(target: Option<&str>) -> Fix {
    let address = target.map_or("<address of the other node>".into(), sh);
    Fix {
        title: "Open the way between the nodes for all TCP ports".to_owned(),
        when: "The address is the right one and still does not answer. NCCL listens on random ports.".to_owned(),
        commands: vec![
            format!("ip route get {address}; ping -c 3 {address}"),
            format!("nc -l 29999   # on the node with {address}; then from the other: nc -vz {address} 29999"),
            "iptables -S; nft list ruleset; firewall-cmd --list-all   # cloud: the security group must allow its own members".to_owned(),
        ],
        needs: "root".to_owned(),
        cost: "Limit the rule to the cluster's network.".to_owned(),
        undo: "Remove the rule.".to_owned(),
    }
}

/// What only hides it.
pub fn avoid() -> Vec<String> {
    vec![
        "More retries (NCCL_SOCKET_RETRY_CNT) or a longer store time-out only wait longer for an address that does not answer.".to_owned(),
        "NCCL_IB_DISABLE=1 changes nothing: the bootstrap goes over TCP in any case.".to_owned(),
    ]
}

/// How to see that it is mended.
pub fn verify() -> Vec<String> {
    vec![
        "`Bootstrap: Using` names an address of the common network on every node.".to_owned(),
        "`Bootstrap timings total` (2.23.4 and later) or the next stage appears on every rank within seconds.".to_owned(),
    ]
}
