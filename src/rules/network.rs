//! What names and lists in a log say about networks: interfaces, RDMA devices, and who chose what. Shared by the
//! rules about the path between nodes.

use super::query::{Ask, Hit};
use crate::digest::{CommLog, Sample};
use crate::event::Stage;
use crate::job::{Comm, Member};
use std::collections::{BTreeMap, BTreeSet};

/// What kind of link an interface is, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// `lo`
    Loopback,
    /// A bridge or one end of a pair inside this host: `docker0`, `virbr0`, `veth…`, `cni0`.
    Bridge,
    /// `wlan0`, `wlp3s0`
    Wifi,
    /// `tailscale0`, `wg0`, `tun0`
    Vpn,
    /// IP over InfiniBand: `ib0`
    Ipoib,
    /// Anything else.
    Other,
}

impl Link {
    /// The kind of the interface called `name`.
    pub fn of(name: &str) -> Self {
        let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        if name == "lo" || name.starts_with("lo:") {
            Self::Loopback
        } else if any(&[
            "docker",
            "br-",
            "virbr",
            "veth",
            "cni",
            "flannel",
            "cali",
            "lxc",
            "lxdbr",
            "podman",
            "kube-",
            "vnet",
            "ip6tnl",
            "tunl",
            "sit0",
            "cilium",
            "vxlan",
            "pod-id-link",
            "eni",
            "azv",
            "gke",
            "nodelocaldns",
            "dummy",
            "weave",
            "vboxnet",
            "vmnet",
            "antrea",
        ]) {
            Self::Bridge
        } else if any(&["wlan", "wlp", "wlo", "wlx", "wifi"]) {
            Self::Wifi
        } else if any(&["tailscale", "wg", "tun", "tap", "zt", "ppp", "nordlynx", "utun"]) {
            Self::Vpn
        } else if name.strip_prefix("ib").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) || any(&["ibp", "ibs", "bond-ib"]) {
            Self::Ipoib
        } else {
            Self::Other
        }
    }

    /// Why data between nodes should not go over it.
    pub fn complaint(self) -> Option<&'static str> {
        match self {
            Self::Loopback => Some("the loopback interface, which no other node reaches"),
            Self::Bridge => Some("a bridge or tunnel inside the host"),
            Self::Wifi => Some("Wi-Fi"),
            Self::Vpn => Some("a VPN"),
            Self::Ipoib | Self::Other => None,
        }
    }
}

/// An interface with its address, from a list that the library printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Name.
    pub name: &'a str,
    /// IPv4 or IPv6 address without port; an IPv6 scope stays.
    pub address: &'a str,
}

/// Reads `[0]eth0:10.0.0.1<0> [1]ib0:fe80::1%ib0<0>`.
pub fn interfaces(list: &str) -> Vec<Interface<'_>> {
    list.split_whitespace()
        .filter_map(|entry| {
            let entry = entry.rsplit_once(']').map_or(entry, |(_, e)| e);
            let (name, rest) = entry.split_once(':')?;
            let address = rest.split_once('<').map_or(rest, |(a, _)| a);
            (!name.is_empty() && !address.is_empty()).then_some(Interface { name, address })
        })
        .collect()
}

/// Names of the RDMA devices in `[0]mlx5_0:1/RoCE [1]={[0] mlx5_1:1/RoCE, …} [RO]`; none in `[RO]`.
pub fn devices(list: &str) -> Vec<&str> {
    list.split([' ', ',', '{', '}', '='])
        .filter_map(|entry| {
            let entry = entry.rsplit_once(']').map_or(entry, |(_, e)| e);
            let (name, rest) = entry.split_once(':')?;
            (!name.is_empty() && rest.contains('/')).then_some(name)
        })
        .collect()
}

/// Reads an HCA filter or interface list: `=mlx5_0:1,mlx5_1` → `mlx5_0`, `mlx5_1`; nothing for an exclusion.
pub fn wanted(value: &str) -> Vec<&str> {
    let value = value.trim().trim_matches('"');
    if value.starts_with('^') {
        return Vec::new();
    }
    value.trim_start_matches('=').split(',').filter_map(|v| v.split(':').next()).map(str::trim).filter(|v| !v.is_empty()).collect()
}

/// The name has the form of an RDMA device.
pub fn is_hca(name: &str) -> bool {
    ["mlx4_", "mlx5_", "roce", "hfi1_", "bnxt_re", "irdma", "efa_", "rdmap", "erdma", "qedr", "hns_", "ionic_", "cxgb4_", "i40iw", "rxe", "siw", "mana_"]
        .iter()
        .any(|p| name.to_ascii_lowercase().starts_with(p))
}

/// The name has the form of a network interface.
pub fn is_interface(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let numbered = |prefix: &str| lower.strip_prefix(prefix).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    !is_hca(name)
        && (numbered("eth")
            || numbered("ib")
            || numbered("bond")
            || ["enp", "ens", "eno", "enx", "enP", "team"].iter().any(|p| lower.starts_with(&p.to_ascii_lowercase()))
            || Link::of(&lower).complaint().is_some())
}

/// An address that no other link reaches: 169.254.x.y or fe80::.
pub fn is_link_local(address: &str) -> bool {
    address.starts_with("169.254.") || address.to_ascii_lowercase().starts_with("fe80:")
}

/// Addresses without their port: `10.0.0.1<4791>` → `10.0.0.1`.
pub fn host_part(peer: &str) -> &str {
    peer.split_once('<').map_or(peer, |(a, _)| a).trim()
}

/// The network is TCP.
pub fn is_socket(net: &str) -> bool {
    net == "Socket"
}

/// Networks of a communicator with the members that use them and the record that says so.
pub type Choice<'a> = BTreeMap<&'a str, Vec<(&'a Member, &'a Sample)>>;

/// Which member chose which network.
pub fn choice<'a>(ask: Ask<'a>, comm: &'a Comm) -> Choice<'a> {
    let mut nets: Choice<'a> = BTreeMap::new();
    for (m, log) in ask.views(comm) {
        if let Some((net, sample)) = net_of(ask, m, log) {
            nets.entry(net).or_default().push((m, sample));
        }
    }
    nets
}

fn net_of<'a>(ask: Ask<'a>, m: &Member, log: &'a CommLog) -> Option<(&'a str, &'a Sample)> {
    if let Some((net, sample)) = &log.net {
        return Some((net.as_str(), sample));
    }
    if let Some(c) = log.channels.iter().find(|c| !c.net.is_empty()) {
        return Some((c.net.as_str(), &c.first));
    }
    let ledger = &ask.job.procs[m.proc].log.ledger;
    let assigned = ledger.of("net.plugin_assigned").last().and_then(|e| Some((e.first.get("plugin")?, &*e.first)));
    assigned.or_else(|| ledger.of("net.using").last().and_then(|e| Some((e.first.get("net")?, &*e.first))))
}

/// Interfaces that carry the data of these processes: those that NET/Socket channels name by number, else all listed.
pub fn carriers<'a>(ask: Ask<'a>, procs: &BTreeSet<usize>) -> Vec<Interface<'a>> {
    let mut found: Vec<Interface<'a>> = Vec::new();
    for p in procs {
        let log = &ask.job.procs[*p].log;
        let Some(list) = log.ledger.of("socket.using").last().and_then(|e| e.first.get("list")).map(interfaces) else { continue };
        let used: BTreeSet<usize> =
            log.comms.iter().flat_map(|c| &c.channels).filter(|c| is_socket(&c.net)).filter_map(|c| c.via.split('/').nth(2)?.parse().ok()).filter(|i| *i < list.len()).collect();
        for (i, interface) in list.into_iter().enumerate() {
            if (used.is_empty() || used.contains(&i)) && !found.iter().any(|k| k.name == interface.name) {
                found.push(interface);
            }
        }
    }
    found
}

/// A title with its last part, which is left out where the whole would be too long for one line.
pub fn fit(title: String, tail: &str) -> String {
    if title.chars().count() + tail.chars().count() > 100 { title } else { title + tail }
}

/// `eth0`, `eth0 and eth1`, `eth0, eth1 and 6 more`.
pub fn names_text(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [a, b] => format!("{a} and {b}"),
        [a, b, rest @ ..] => format!("{a}, {b} and {} more", rest.len()),
    }
}

/// Hits of a kind that belong to these processes.
pub fn hits_of<'a>(ask: Ask<'a>, kind: &str, procs: &BTreeSet<usize>) -> Vec<Hit<'a>> {
    ask.hits(kind).into_iter().filter(|h| procs.contains(&h.proc)).collect()
}

/// Names of RDMA devices that any line of the last attempt shows, in order.
pub fn seen_devices<'a>(ask: Ask<'a>) -> Vec<&'a str> {
    let mut names: Vec<&'a str> = Vec::new();
    for hit in ask.hits("ib.using") {
        names.extend(hit.entry.first.get("list").map(devices).unwrap_or_default());
    }
    for hit in ask.any_of(&["ib.device", "ib.open_failed", "ib.async_event", "gdr.state", "host.ibv_device", "host.show_gids_row"]) {
        names.extend(hit.entry.first.get("hca").map(|h| h.split([':', '/']).next().unwrap_or(h)));
    }
    names.extend(super::facts::devices(ask));
    let mut seen = BTreeSet::new();
    names.retain(|n| !n.is_empty() && seen.insert(*n));
    names
}

/// The process passed the bootstrap of a communicator: everybody met. Up to 2.22 `Init START` comes after it.
pub fn bootstrapped(ask: Ask<'_>, proc: usize) -> bool {
    let old = version_of(ask, proc).or_else(|| ask.version()).is_some_and(|v| v < (2, 23, 0));
    ask.job.procs[proc].log.comms.iter().any(|c| {
        let after = [
            Stage::Bootstrapped,
            Stage::Topology,
            Stage::Graph,
            Stage::Layout,
            Stage::Proxy,
            Stage::Connecting,
            Stage::Connected,
            Stage::Tuned,
            Stage::InitComplete,
            Stage::Collective,
        ];
        after.iter().any(|s| c.saw(*s)) || (old && c.saw(Stage::InitStart)) || c.complete.is_some()
    })
}

/// The version that a process itself printed.
pub fn version_of(ask: Ask<'_>, proc: usize) -> Option<(u32, u32, u32)> {
    ask.job.procs[proc].log.versions.iter().find_map(|(_, v)| super::query::number(v))
}

/// Host name of a process as the job table shows it; empty if unknown.
pub fn host_of(ask: Ask<'_>, proc: usize) -> &str {
    let p = &ask.job.procs[proc];
    p.host_index.map_or(p.host.as_str(), |h| ask.job.hosts[h].name.as_str())
}

/// Distinct host names of processes, in order.
pub fn hosts_of(ask: Ask<'_>, procs: &BTreeSet<usize>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for p in procs {
        let host = host_of(ask, *p);
        if !host.is_empty() && !hosts.iter().any(|h| h == host) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let list = interfaces("[0]eth0:10.0.0.1<0> [1]veth1:fe80::1%veth1<0>");
        assert_eq!(list, [Interface { name: "eth0", address: "10.0.0.1" }, Interface { name: "veth1", address: "fe80::1%veth1" }]);
        assert_eq!(devices("[0]mlx5_0:1/RoCE [1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE} [RO]"), ["mlx5_0", "mlx5_1", "mlx5_2"]);
        assert!(devices("[RO]").is_empty());
        assert_eq!(wanted("=mlx5_0:1,mlx5_3"), ["mlx5_0", "mlx5_3"]);
        assert!(wanted("^mlx5_0").is_empty());
    }

    #[test]
    fn names_tell_interface_from_device() {
        for name in ["eth0", "enp1s0f0np0", "ens3", "eno1", "ib0", "bond0", "wlan0", "docker0", "enP2p1s0f1np1"] {
            assert!(is_interface(name) && !is_hca(name), "{name}");
        }
        for name in ["mlx5_0", "rocep1s0f0", "bnxt_re0", "rdmap1s0"] {
            assert!(is_hca(name) && !is_interface(name), "{name}");
        }
        assert_eq!(Link::of("wlp3s0"), Link::Wifi);
        assert_eq!(Link::of("tailscale0"), Link::Vpn);
        assert_eq!(Link::of("eth0"), Link::Other);
    }
}
