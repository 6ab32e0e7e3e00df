//! What runs over what, in few words.

use crate::job::Job;
use std::collections::BTreeMap;

/// Kind of a connection, from the best to the one that surprises most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// GPU to GPU: NVLink, xGMI or PCIe.
    P2p,
    /// Through host memory.
    Shm,
    /// Network, straight from GPU memory.
    NetGdr,
    /// Network, through host memory.
    Net,
    /// TCP sockets.
    Socket,
    /// In-network reduction.
    CollNet,
    /// Anything else.
    Other,
}

impl Carrier {
    /// All kinds.
    pub const ALL: [Self; 7] = [Self::P2p, Self::Shm, Self::NetGdr, Self::Net, Self::Socket, Self::CollNet, Self::Other];

    /// For legends.
    pub fn label(self) -> &'static str {
        match self {
            Self::P2p => "P2P",
            Self::Shm => "shared memory",
            Self::NetGdr => "network, GPU Direct RDMA",
            Self::Net => "network",
            Self::Socket => "TCP sockets",
            Self::CollNet => "CollNet",
            Self::Other => "other",
        }
    }

    /// Short name, also a CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Self::P2p => "p2p",
            Self::Shm => "shm",
            Self::NetGdr => "gdr",
            Self::Net => "net",
            Self::Socket => "tcp",
            Self::CollNet => "coll",
            Self::Other => "oth",
        }
    }

    /// It leaves the node.
    pub fn leaves(self) -> bool {
        matches!(self, Self::NetGdr | Self::Net | Self::Socket)
    }
}

/// The kind of a transport as printed.
pub fn carrier(via: &str) -> Carrier {
    match via {
        v if v.starts_with("P2P") => Carrier::P2p,
        v if v.starts_with("SHM") || v.starts_with("direct shared memory") => Carrier::Shm,
        v if v.starts_with("NET/Socket") => Carrier::Socket,
        v if v.starts_with("NET") && v.contains("/GDRDMA") => Carrier::NetGdr,
        v if v.starts_with("NET") => Carrier::Net,
        v if v.starts_with("COLL") => Carrier::CollNet,
        _ => Carrier::Other,
    }
}

/// All connections of one sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// `P2P/CUMEM`, `NET/IB with GPU Direct RDMA`.
    pub name: String,
    /// Connections between two ranks.
    pub pairs: u64,
    /// Channels of all of them.
    pub channels: u64,
}

/// The connections of the last run by sort, most first.
pub fn lanes(job: &Job) -> Vec<Lane> {
    let mut sorts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for transport in &job.transports {
        let mut name = transport.via.split('/').take(2).collect::<Vec<_>>().join("/");
        if carrier(&transport.via) == Carrier::NetGdr {
            name += " with GPU Direct RDMA";
        }
        let (pairs, channels) = sorts.entry(name).or_default();
        *pairs += 1;
        *channels += u64::from(transport.channels);
    }
    let mut lanes: Vec<Lane> = sorts.into_iter().map(|(name, (pairs, channels))| Lane { name, pairs, channels }).collect();
    lanes.sort_by(|a, b| (b.pairs, &a.name).cmp(&(a.pairs, &b.name)));
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_transports_have_a_kind() {
        let cases = [
            ("P2P/CUMEM/read", Carrier::P2p),
            ("SHM/direct/direct", Carrier::Shm),
            ("direct shared memory", Carrier::Shm),
            ("NET/IB/0/GDRDMA", Carrier::NetGdr),
            ("NET/AWS Libfabric/0(3)/GDRDMA/Shared", Carrier::NetGdr),
            ("NET/IB/1", Carrier::Net),
            ("NET/Socket/0", Carrier::Socket),
            ("COLLNET/SHARP/0", Carrier::CollNet),
            ("pigeon", Carrier::Other),
        ];
        for (via, kind) in cases {
            assert_eq!(carrier(via), kind, "{via}");
        }
    }
}
