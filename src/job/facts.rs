//! The facts of hosts, resolved to the job's nodes: which RDMA device belongs to which interface, which GID is right.

use super::HostRow;
use super::owner::{Held, Signs, owner, same_host};
use crate::digest::{Gid, GidKind, HostFacts, Interface, Line, LinkLayer, Naming, Port, StreamInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// The facts of all hosts.
#[derive(Debug, Default)]
pub struct Facts {
    /// One entry a host, those of the job's hosts first, in their order.
    pub nodes: Vec<NodeFacts>,
}

/// The facts of one host.
#[derive(Debug)]
pub struct NodeFacts {
    /// Index into `Job::hosts`; `None` if no host of the job could be told to be this one.
    pub host: Option<usize>,
    /// Host name; empty if nothing names it.
    pub name: String,
    /// How it is known whose facts these are.
    pub naming: Naming,
    /// The facts, joined over files. Their lines carry the stream.
    pub facts: HostFacts,
    /// Paths of the files that they come from.
    pub files: Vec<String>,
}

/// A port of an RDMA device with the network interface behind it.
#[derive(Debug, Clone, Copy)]
pub struct Rail<'a> {
    /// The node.
    pub node: &'a NodeFacts,
    /// RDMA device.
    pub hca: &'a str,
    /// Its port.
    pub port: &'a Port,
    /// Network interface behind the port, if it was told and has facts of its own.
    pub interface: Option<&'a Interface>,
}

/// What the IOMMU does with transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iommu {
    /// It is off.
    Off,
    /// It passes them through.
    Passthrough,
    /// It is on and translates.
    Translates,
    /// The command line leaves it to kernel and firmware.
    Untold,
}

impl Facts {
    /// Tells whose facts the streams hold. `signs` has one entry a host, `held` one a stream with lines of the library.
    pub fn resolve(streams: &mut [StreamInfo], hosts: &[HostRow], nnodes: Option<u32>, signs: &[Signs<'_>], held: &BTreeMap<u32, Held>) -> Self {
        let mut nodes: Vec<NodeFacts> = Vec::new();
        for (stream, info) in streams.iter_mut().enumerate() {
            let stream = stream as u32;
            let tasks: BTreeSet<u32> = info.facts.iter().filter_map(|f| f.task).collect();
            for mut facts in std::mem::take(&mut info.facts) {
                facts.set_stream(stream);
                let here = held.get(&stream);
                let of_task = facts.task.zip(here).and_then(|(task, held)| held.of_task(task, &tasks));
                let found = owner(&facts, &info.path, hosts, nnodes, signs, of_task.or_else(|| here?.only()));
                let (host, naming) = found.map_or((None, facts.naming), |(h, by)| (Some(h), by));
                let name = host.map_or_else(|| facts.host.clone(), |h| hosts[h].name.clone());
                // Facts that nothing names are one host's only within one file.
                let known = nodes.iter_mut().find(|n| if host.is_some() { n.host == host } else { n.host.is_none() && !name.is_empty() && n.name == name });
                if let Some(node) = known {
                    node.naming = node.naming.min(naming);
                    node.facts.join(facts);
                    if !node.files.contains(&info.path) {
                        node.files.push(info.path.clone());
                    }
                    continue;
                }
                // Joining holds facts of any origin to their bounds.
                let mut bounded = HostFacts::default();
                bounded.join(facts);
                nodes.push(NodeFacts { host, name, naming, facts: bounded, files: vec![info.path.clone()] });
            }
        }
        nodes.sort_by_key(|n| n.host.unwrap_or(usize::MAX));
        Self { nodes }
    }

    /// No host has facts.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The facts of a host of the job, by its index.
    pub fn of(&self, host: usize) -> Option<&NodeFacts> {
        self.nodes.iter().find(|n| n.host == Some(host))
    }

    /// The facts of a host by name; its first label is enough.
    pub fn named(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.iter().find(|n| n.name == name).or_else(|| self.nodes.iter().find(|n| !n.name.is_empty() && same_host(&n.name, name)))
    }

    /// One port a node on the network that all nodes share: RDMA, up, fastest first. A node without a port on it is
    /// left out. Empty where no node shows an RDMA port with an address.
    pub fn fabric(&self) -> Vec<Rail<'_>> {
        let mut networks: BTreeMap<(u128, u8), Vec<Rail<'_>>> = BTreeMap::new();
        for node in &self.nodes {
            let mut mine: BTreeMap<(u128, u8), Rail<'_>> = BTreeMap::new();
            for rail in node.rails().into_iter().filter(|r| r.is_up() != Some(false)) {
                let Some((ip, prefix)) = rail.address() else { continue };
                let network = crate::digest::Address { ip: IpAddr::V4(ip), prefix }.network();
                let best = mine.entry(network).or_insert(rail);
                if rail.speed() > best.speed() {
                    *best = rail;
                }
            }
            for (network, rail) in mine {
                networks.entry(network).or_default().push(rail);
            }
        }
        let slowest = |rails: &[Rail<'_>]| rails.iter().map(Rail::speed).min().unwrap_or(0);
        // The first of equals: the map is in order of the addresses.
        let best = networks.into_values().rev().max_by_key(|rails| (rails.len(), slowest(rails)));
        best.unwrap_or_default()
    }
}

impl NodeFacts {
    /// How to call it in a sentence: its name, or the file that its facts come from.
    pub fn title(&self) -> String {
        match (self.name.as_str(), self.files.first()) {
            ("", Some(file)) => self.facts.task.map_or_else(|| format!("the host of {file}"), |task| format!("the host of task {task} of {file}")),
            ("", None) => "a host".to_owned(),
            (name, _) => name.to_owned(),
        }
    }

    /// All ports of all RDMA devices.
    pub fn rails(&self) -> Vec<Rail<'_>> {
        let ports = self.facts.hcas.iter().flat_map(|h| h.ports.iter().map(move |p| (h, p)));
        ports.map(|(h, port)| Rail { node: self, hca: &h.name, port, interface: port.netdev_name().and_then(|n| self.facts.interface(n)) }).collect()
    }

    /// The port of an RDMA device; the first one where no number is given.
    pub fn rail(&self, hca: &str, port: Option<u8>) -> Option<Rail<'_>> {
        self.rails().into_iter().find(|r| r.hca == hca && port.is_none_or(|p| p == r.port.number))
    }

    /// What the IOMMU does with transfers, as far as the kernel's command line tells.
    pub fn iommu(&self) -> Option<(Iommu, &Line)> {
        let line = self.facts.cmdline.as_ref()?;
        let word = |w: &str| line.value.split_whitespace().any(|x| x == w);
        let state = if ["iommu=off", "amd_iommu=off", "intel_iommu=off"].iter().any(|w| word(w)) {
            Iommu::Off
        } else if word("iommu=pt") || word("iommu.passthrough=1") {
            Iommu::Passthrough
        } else if ["amd_iommu=on", "intel_iommu=on", "amd_iommu=force_enable", "iommu=force", "iommu.passthrough=0", "iommu=nopt"].iter().any(|w| word(w)) {
            Iommu::Translates
        } else {
            Iommu::Untold
        };
        Some((state, &line.at))
    }

    /// The port behind a network interface.
    pub fn rail_of(&self, interface: &str) -> Option<Rail<'_>> {
        self.rails().into_iter().find(|r| r.port.netdev_name() == Some(interface))
    }
}

impl<'a> Rail<'a> {
    /// Name of the network interface behind the port.
    pub fn netdev(&self) -> Option<&'a str> {
        self.port.netdev_name()
    }

    /// The port is active; `None` if nothing tells.
    pub fn is_up(&self) -> Option<bool> {
        match &self.port.state {
            Some(state) => Some(state.value == "ACTIVE"),
            None => self.interface.and_then(|i| i.up.as_ref()).map(|u| u.value),
        }
    }

    /// Gb/s of the port, else of its interface; 0 if unknown.
    pub fn speed(&self) -> u64 {
        let port = self.port.rate.as_ref().map(|r| u64::from(r.value));
        port.or_else(|| Some(self.interface?.speed.as_ref()?.value / 1000)).unwrap_or(0)
    }

    /// The first IPv4 address of the interface, else that of a GID (whose network is then guessed to have 24 bits).
    pub fn address(&self) -> Option<(Ipv4Addr, u8)> {
        let listed = self.interface.into_iter().flat_map(|i| &i.addresses).find_map(|a| match a.value.ip {
            IpAddr::V4(ip) => Some((ip, a.value.prefix)),
            IpAddr::V6(_) => None,
        });
        listed.or_else(|| Some((self.gid()?.ipv4()?, 24)))
    }

    /// The entry that RoCE needs: v2, IPv4-mapped, of this port's interface. `None` if the table does not show one.
    pub fn gid(&self) -> Option<&'a Gid> {
        let mut fit = self.port.gids.iter().filter(|g| self.fits(g));
        let own: Vec<IpAddr> = self.interface.map(|i| i.addresses.iter().map(|a| a.value.ip).collect()).unwrap_or_default();
        let first = fit.next()?;
        let listed = |g: &&Gid| g.ipv4().is_some_and(|ip| own.contains(&IpAddr::V4(ip)));
        if listed(&first) { Some(first) } else { fit.find(|g| listed(g)).or(Some(first)) }
    }

    /// Whether an entry is one that RoCE needs.
    pub fn fits(&self, gid: &Gid) -> bool {
        let here = gid.netdev.is_empty() || self.netdev().is_none_or(|n| n == gid.netdev);
        gid.kind == Some(GidKind::V2) && gid.ipv4().is_some() && here
    }

    /// The link is Ethernet, so addresses are GIDs.
    pub fn is_roce(&self) -> bool {
        self.port.layer.as_ref().is_some_and(|l| l.value == LinkLayer::Ethernet) || self.port.gids.iter().any(|g| g.kind == Some(GidKind::V2))
    }

    /// The index of that entry, as a variable. NCCL finds it by itself from 2.21 on; the number is this node's alone and
    /// may change with a boot, a link event or an address.
    pub fn gid_export(&self) -> Option<(&'static str, String)> {
        Some(("NCCL_IB_GID_INDEX", self.gid()?.index.to_string()))
    }

    /// The variables that put this node's data path on this port, for a job over several nodes. Without the GID index.
    pub fn exports(&self) -> Vec<(&'static str, String)> {
        let mut list = Vec::new();
        if let Some(interface) = self.netdev() {
            list.push(("NCCL_SOCKET_IFNAME", format!("={interface}")));
            list.push(("GLOO_SOCKET_IFNAME", interface.to_owned()));
        }
        list.push(("NCCL_IB_HCA", format!("={}:{}", self.hca, self.port.number)));
        list.push(("NCCL_IB_DISABLE", "0".to_owned()));
        list.push(("NCCL_NET", "IB".to_owned()));
        if let Some((address, _)) = self.address() {
            list.push(("VLLM_HOST_IP", address.to_string()));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    fn node(name: &str, ip: u8) -> String {
        format!(
            "### ncclog-collect 1 host={name} time=2026-05-04T10:00:00Z\n### $ ip -br addr\neno1 UP 192.168.40.{ip}/24\nens1f0np0 UP 10.20.0.{ip}/16\n### exit 0\n### $ rdma link show\nlink rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0\nlink rocep1s0f1/1 state DOWN physical_state DISABLED netdev ens1f1np1\n### exit 0\n### $ show_gids\nrocep1s0f0 1 0 fe80:0000:0000:0000:0200:5eff:fe10:0007 v1 ens1f0np0\nrocep1s0f0 1 {ip} 0000:0000:0000:0000:0000:ffff:0a14:000{ip} 10.20.0.{ip} v2 ens1f0np0\n"
        )
    }

    #[test]
    fn the_fabric_is_what_all_nodes_share() {
        let (a, b) = (node("vega", 5), node("lyra", 7));
        let job = analyze_texts(&[("a.txt", &a), ("b.txt", &b)]).job;
        let fabric = job.facts.fabric();
        assert_eq!(
            fabric.iter().map(|r| (r.node.name.as_str(), r.hca, r.netdev(), r.gid().map(|g| g.index))).collect::<Vec<_>>(),
            [("vega", "rocep1s0f0", Some("ens1f0np0"), Some(5)), ("lyra", "rocep1s0f0", Some("ens1f0np0"), Some(7)),]
        );
        assert!(fabric[1].exports().contains(&("VLLM_HOST_IP", "10.20.0.7".to_owned())));
        assert_eq!(fabric[0].gid_export(), Some(("NCCL_IB_GID_INDEX", "5".to_owned())));
        let gid = fabric[1].gid().expect("gid");
        assert_eq!((job.path(gid.at.stream), gid.at.line), ("b.txt", 12));
    }
}
