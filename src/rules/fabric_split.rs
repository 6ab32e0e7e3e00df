//! fabric-split: Data-path settings of one node point to different links.

use super::facts;
use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::network;
use super::query::{Ask, Hit, SettingHit};
use super::remedy::sh;
use super::{Cause, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "fabric-split", aliases: &[], summary: "Data-path settings of one node point to different links.", explanation: include_str!("fabric_split.md") },
    check,
    explains: &[],
    only_alone: false,
};

/// One setting and the interface that it comes down to.
struct Binding<'a> {
    setting: SettingHit<'a>,
    interface: String,
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hosts: BTreeSet<&str> = ask.procs().map(|(i, _)| network::host_of(ask, i)).collect();
    let facts = Facts { hits: ask.any_of(&["bootstrap.using", "socket.using", "host.show_gids_row", "host.ibv_device"]), settings: SETTINGS.map(|name| ask.settings(name)) };
    hosts.into_iter().find_map(|h| on_host(ask, &facts, h)).into_iter().collect()
}

/// Variables that bind the data path to an interface.
const SETTINGS: [&str; 4] = ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "VLLM_HOST_IP", "NCCL_IB_HCA"];

/// What all hosts say, asked once: a job may have hundreds of them.
struct Facts<'a> {
    hits: Vec<Hit<'a>>,
    settings: [Vec<SettingHit<'a>>; 4],
}

/// Interfaces of a host by address and by HCA, from the library's lists and from pasted host facts.
fn maps<'a>(ask: Ask<'a>, told: &Facts<'a>, host: &str) -> (BTreeMap<&'a str, &'a str>, BTreeMap<&'a str, &'a str>) {
    let (mut by_address, mut by_hca) = (BTreeMap::new(), BTreeMap::new());
    let near = |proc: usize| network::host_of(ask, proc) == host || network::host_of(ask, proc).is_empty();
    for h in told.hits.iter().filter(|h| near(h.proc)) {
        for i in h.entry.first.get("list").map(network::interfaces).unwrap_or_default() {
            by_address.insert(i.address, i.name);
        }
        if let (Some(iface), Some(ip)) = (h.entry.first.get("iface").or(h.entry.first.get("if")), h.entry.first.get("ip")) {
            by_address.insert(ip, iface);
        }
        if let (Some(hca), Some(iface)) = (h.entry.first.get("hca"), h.entry.first.get("if")) {
            by_hca.insert(hca.split('/').next().unwrap_or(hca), iface);
        }
    }
    // Facts of the host itself are surer than lines that nobody could be told to own.
    if let Some(node) = facts::of_host(ask, host) {
        for rail in node.rails() {
            by_hca.extend(rail.netdev().map(|n| (rail.hca, n)));
        }
    }
    (by_address, by_hca)
}

/// The interface of a host that has an address.
fn interface_at<'a>(ask: Ask<'a>, host: &str, address: &str) -> Option<&'a str> {
    let node = facts::of_host(ask, host)?;
    node.facts.interfaces.iter().find(|i| i.addresses.iter().any(|a| a.value.ip.to_string() == address)).map(|i| i.name.as_str())
}

fn on_host(ask: Ask<'_>, facts: &Facts<'_>, host: &str) -> Option<Finding> {
    let near = |s: &&SettingHit<'_>| network::host_of(ask, s.proc) == host || network::host_of(ask, s.proc).is_empty();
    let [socket, gloo, vllm, hca] = facts.settings.each_ref().map(|list| list.iter().find(near).copied());
    // One variable alone does not contradict itself.
    if [&socket, &gloo, &vllm, &hca].into_iter().flatten().count() < 2 {
        return None;
    }
    let (by_address, by_hca) = maps(ask, facts, host);
    let single = |s: &SettingHit<'_>| match network::wanted(s.value).as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    };
    let mut bindings = Vec::new();
    for s in [socket, gloo].into_iter().flatten() {
        if let Some(interface) = single(&s) {
            bindings.push(Binding { setting: s, interface });
        }
    }
    if let Some(s) = vllm
        && let Some(interface) = by_address.get(s.value).copied().or_else(|| interface_at(ask, host, s.value))
    {
        bindings.push(Binding { interface: interface.to_owned(), setting: s });
    }
    if let Some(s) = hca
        && let Some(interface) = single(&s).and_then(|h| by_hca.get(h.as_str()).copied())
    {
        bindings.push(Binding { interface: interface.to_owned(), setting: s });
    }
    // A prefix fits every interface that begins with it.
    let same = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
    let first = bindings.first()?;
    let other = bindings.iter().find(|b| !same(&b.interface, &first.interface))?;
    Some(finding(ask, host, first, other, &bindings))
}

fn finding(ask: Ask<'_>, host: &str, first: &Binding<'_>, other: &Binding<'_>, all: &[Binding<'_>]) -> Finding {
    // Management traffic on a network of its own is fine as long as everything connects.
    let trouble = !ask.any_of(&["socket.connect_failed", "socket.retries_exceeded", "torch.store_connect", "bootstrap.no_subnet"]).is_empty();
    let (severity, confidence) = if trouble { (Severity::Warning, Confidence::Possible) } else { (Severity::Info, Confidence::Possible) };
    let place = if host.is_empty() { "one node".to_owned() } else { host.to_owned() };
    let title = format!("On {place} {} means {} and {} means {}", first.setting.name, first.interface, other.setting.name, other.interface);
    let mut f = Finding::new(RULE.cause.id, severity, confidence, title);
    f.why = "The settings of the data path point to different links of one node. That is fine where the second link is a management network that reaches all nodes, and fatal where a peer listens on one link and is called on the other.".to_owned();
    f.hosts = if host.is_empty() { Vec::new() } else { vec![host.to_owned()] };
    f.evidence = all.iter().map(|b| b.setting.evidence()).collect::<Vec<Evidence>>();
    let interface = all.iter().find(|b| b.setting.name == "NCCL_IB_HCA").map_or(first.interface.as_str(), |b| b.interface.as_str());
    let netdev = format!("netdev {interface}");
    let interface = sh(interface);
    f.fixes = vec![Fix {
        title: "Point all data-path settings of the node to one link".to_owned(),
        when: "Connections between nodes fail, or data goes over the wrong link.".to_owned(),
        commands: vec![
            format!("export NCCL_SOCKET_IFNAME={interface} GLOO_SOCKET_IFNAME={interface}"),
            format!("export VLLM_HOST_IP=$(ip -4 -o addr show {interface} | awk '{{print $4}}' | cut -d/ -f1)"),
            format!("rdma link show | grep -w {}   # its HCA for NCCL_IB_HCA", sh(&netdev)),
        ],
        needs: "nothing".to_owned(),
        undo: "Set the former values.".to_owned(),
        ..Fix::default()
    }];
    f.verify = vec!["`Bootstrap: Using` and `NET/IB : Using …; OOB` name that interface on every node.".to_owned()];
    f
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Finding, Severity};

    fn find(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == "fabric-split")
    }

    #[test]
    fn two_links_on_one_node() {
        let log = "export GLOO_SOCKET_IFNAME=eth0\nalpha:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0\nalpha:1:1 [0] NCCL INFO Bootstrap: Using enp1s0f0np0:192.168.9.1<0>\n";
        let f = find(log).unwrap();
        assert_eq!(f.severity, Severity::Info);
        let failed = format!("{log}alpha:1:1 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.168.9.2<39906> failed : Network is unreachable\n");
        assert_eq!(find(&failed).unwrap().severity, Severity::Warning);
    }

    #[test]
    fn one_link_is_fine() {
        assert!(find("export GLOO_SOCKET_IFNAME=enp1s0f0np0\nalpha:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1\n").is_none());
    }
}
