//! What the RDMA rules share: GIDs, link layers, completion statuses, and whose address a peer is.

use super::query::{Ask, Hit};
use crate::digest::{Sample, SampleLevel};
use crate::job::Proc;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A GID, by what it can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gid {
    /// `::`: the entry of the table holds nothing.
    Empty,
    /// `fe80::…`: RoCE v1, or v2 that only reaches the same link.
    LinkLocal(Ipv6Addr),
    /// `::ffff:a.b.c.d`: the IPv4 address of the HCA's interface.
    Mapped(Ipv4Addr),
    /// Masked by whoever published the log; only the class is known.
    Masked,
    /// `fd00::…` or a global IPv6 address.
    Ipv6(Ipv6Addr),
}

impl Gid {
    /// Reads a GID as NCCL prints it. `N/A` and garbage are unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(v4) = text.strip_prefix("::ffff:") {
            return Some(v4.parse().map_or(Self::Masked, Self::Mapped));
        }
        text.parse::<Ipv6Addr>().ok().map(Self::of)
    }

    /// Reads the two halves of a queue pair line, `0/2010A8C0FFFF0000`: network bytes, printed as integers of a
    /// little-endian host.
    pub fn decode(halves: &str) -> Option<Self> {
        let (high, low) = halves.split_once('/')?;
        let half = |text: &str| u64::from_str_radix(text.trim(), 16).ok().map(u64::to_le_bytes);
        let (high, low) = (half(high)?, half(low)?);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        Some(Self::of(Ipv6Addr::from(bytes)))
    }

    fn of(ip: Ipv6Addr) -> Self {
        if ip.is_unspecified() {
            Self::Empty
        } else if let Some(v4) = ip.to_ipv4_mapped() {
            Self::Mapped(v4)
        } else if ip.is_unicast_link_local() {
            Self::LinkLocal(ip)
        } else {
            Self::Ipv6(ip)
        }
    }

    /// One GID is link-local (RoCE v1) and the other carries an IPv4 address: no packet passes between them.
    pub fn classes_differ(self, other: Self) -> bool {
        let routed = |g: Self| matches!(g, Self::Mapped(_) | Self::Masked | Self::Ipv6(_));
        let local = |g: Self| matches!(g, Self::LinkLocal(_));
        local(self) && routed(other) || routed(self) && local(other)
    }

    /// The first 24 bits (IPv4) or 64 bits (IPv6): a guess at the subnet, good enough to tell rails apart.
    pub fn subnet(self) -> Option<u64> {
        match self {
            Self::Mapped(v4) => Some(u64::from(u32::from(v4) >> 8)),
            Self::Ipv6(ip) => Some((u128::from(ip) >> 64) as u64),
            _ => None,
        }
    }
}

impl std::fmt::Display for Gid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str(":: (empty)"),
            Self::LinkLocal(ip) => write!(f, "{ip} (link-local)"),
            Self::Mapped(ip) => write!(f, "::ffff:{ip} (IPv4)"),
            Self::Masked => f.write_str("an IPv4 GID"),
            Self::Ipv6(ip) => write!(f, "{ip}"),
        }
    }
}

/// Link layer of an HCA port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Ethernet: addresses are GIDs.
    Roce,
    /// InfiniBand: addresses are LIDs, given by the subnet manager.
    InfiniBand,
}

/// One device of a `NET/IB : Using` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hca {
    /// Its index in the list.
    pub index: Option<u32>,
    /// Name.
    pub name: String,
    /// Link layer.
    pub layer: Layer,
}

/// Reads `[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB/SHARP [RO]` and the lists of merged devices.
pub fn devices(list: &str) -> Vec<Hca> {
    let mut index = None;
    let mut found = Vec::new();
    for token in list.split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | '=')).filter(|t| !t.is_empty()) {
        let (number, rest) = match token.strip_prefix('[').and_then(|t| t.split_once(']')) {
            Some((n, rest)) => (n.parse().ok(), rest),
            None => (None, token),
        };
        index = number.or(index);
        let Some((name, tail)) = rest.split_once(':') else { continue };
        let Some((_, layer)) = tail.split_once('/') else { continue };
        let layer = if layer.starts_with("RoCE") { Layer::Roce } else { Layer::InfiniBand };
        found.push(Hca { index, name: name.to_owned(), layer });
    }
    found
}

/// The devices that the processes use, each name once.
pub fn used(hits: &[Hit<'_>]) -> Vec<Hca> {
    let mut seen = BTreeSet::new();
    let lists = hits.iter().filter_map(|h| h.get("list"));
    lists.flat_map(devices).filter(|d| seen.insert((d.name.clone(), d.layer))).collect()
}

/// Link layer of a device: by its name in this process's list, else in any list, else by what all lists agree on, else
/// by the queue pairs that were printed.
pub fn layer(ask: Ask<'_>, proc: Option<usize>, hca: Option<&str>) -> Option<Layer> {
    let lists = ask.hits("ib.using");
    let own: Vec<Hit<'_>> = lists.iter().filter(|h| proc.is_none_or(|p| h.proc == p)).copied().collect();
    for devices in [used(&own), used(&lists)] {
        if let Some(found) = hca.and_then(|name| devices.iter().find(|d| d.name == name)) {
            return Some(found.layer);
        }
        let layers: BTreeSet<Layer> = devices.iter().map(|d| d.layer).collect();
        match layers.len() {
            0 => {}
            1 => return layers.into_iter().next(),
            _ => return None,
        }
    }
    match (ask.has("ib.qp_info"), ask.has("ib.qp_lid")) {
        (true, false) => Some(Layer::Roce),
        (false, true) => Some(Layer::InfiniBand),
        _ => None,
    }
}

/// The host that owns the address of a peer, `10.0.0.2<4791>`, as the ranks' own lines tell.
pub fn peer_host<'a>(ask: Ask<'a>, peer: &str) -> Option<&'a str> {
    let ip = peer_ip(peer);
    let own = ask.any_of(&["bootstrap.using", "ib.using"]);
    own.into_iter().find(|h| h.get("ip").is_some_and(|own| peer_ip(own) == ip)).map(|h| h.host()).filter(|h| !h.is_empty())
}

/// The address without port and scope.
pub fn peer_ip(peer: &str) -> &str {
    peer.split(['<', '%']).next().unwrap_or(peer).trim()
}

/// A process whose log just ends, without a word of failure or farewell, while others print theirs, and which may be
/// the peer of one of these failures.
pub fn silent_peer(ask: Ask<'_>, failures: &[Hit<'_>]) -> Option<usize> {
    let (loud, silent): (Vec<_>, Vec<_>) = ask.procs().filter(|(_, p)| p.nccl && !p.log.comms.is_empty()).partition(|(_, p)| voiced(p));
    let ended = loud.iter().filter(|(_, p)| p.log.comms.iter().any(|c| c.end.is_some())).count();
    let hosts: BTreeSet<&str> = silent.iter().map(|(_, p)| p.host.as_str()).collect();
    // Ranks that a launcher killed are silent too, but then most of them are.
    let few = silent.len() <= ended || (hosts.len() == 1 && loud.len() >= 2 * silent.len());
    if !few {
        return None;
    }
    let may_answer_for = |host: &str| failures.iter().any(|f| f.host() != host && f.get("peer").and_then(|p| peer_host(ask, p)).is_none_or(|h| h == host));
    silent.into_iter().find(|(_, p)| may_answer_for(&p.host)).map(|(i, _)| i)
}

/// The process said how it ended, or warned of something.
fn voiced(p: &Proc) -> bool {
    p.log.comms.iter().any(|c| c.end.is_some()) || p.log.ledger.iter().any(|e| e.first.level.is_some_and(|l| l != SampleLevel::Info))
}

/// The records of an entry: the first ones and the last.
pub fn records<'a>(hit: &Hit<'a>) -> impl Iterator<Item = &'a Sample> + use<'a> {
    let entry = hit.entry;
    let last = &entry.last;
    entry.samples.iter().chain(std::iter::once(last).filter(move |l| entry.samples.iter().all(|s| s.at != l.at))).map(AsRef::as_ref)
}

/// What an asynchronous event of an HCA means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The device failed as a whole.
    Device,
    /// A port lost its link.
    PortDown,
    /// A port is up (again).
    PortActive,
    /// GIDs, LID or partition keys of a port changed.
    Address,
    /// A queue pair or completion queue failed.
    Queue,
}

/// The asynchronous events that say something, in order.
pub fn happenings(ask: Ask<'_>) -> Vec<(Happening, Hit<'_>)> {
    let hits = ask.any_of(&["ib.async_event", "ib.async_fatal"]);
    hits.into_iter().filter_map(|h| Some((happening(&h)?, h))).collect()
}

/// The words are those of `ibv_event_type_str`.
const WORDS: [(&str, Happening); 10] = [
    ("work queue", Happening::Queue),
    ("CQ error", Happening::Queue),
    ("SRQ", Happening::Queue),
    ("catastrophic", Happening::Device),
    ("fatal", Happening::Device),
    ("port error", Happening::PortDown),
    ("port active", Happening::PortActive),
    ("GID table", Happening::Address),
    ("LID change", Happening::Address),
    ("Key change", Happening::Address),
];

fn happening(hit: &Hit<'_>) -> Option<Happening> {
    if hit.get("object").is_some() {
        return Some(Happening::Queue);
    }
    // `GID table changed` has no event field.
    let Some(event) = hit.get("event") else { return Some(Happening::Address) };
    WORDS.iter().find(|(word, _)| event.contains(word)).map(|(_, h)| *h)
}

/// A status of `ibv_wc_status`.
pub struct Status {
    /// Its number.
    pub code: i64,
    /// Its name without `IBV_WC_`.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to look at.
    pub look: &'static str,
}

const fn status(code: i64, name: &'static str, meaning: &'static str, look: &'static str) -> Status {
    Status { code, name, meaning, look }
}

const REGISTRATION: &str = "Look at the registration of GPU memory: GPU Direct RDMA (peermem or DMA-BUF), the IOMMU and ACS, and whether buffers are freed while a transfer runs.";
const AGREEMENT: &str =
    "Both ends must run the same library, the same plugin and the same NCCL_BUFFSIZE, NCCL_ALGO and NCCL_PROTO; compare their settings, then suspect the HCA's firmware.";
const FIRMWARE: &str = "Look at the HCA's firmware and driver, and at the kernel log of both nodes for mlx5 errors.";

/// All statuses of `enum ibv_wc_status`.
pub const STATUSES: &[Status] = &[
    status(1, "LOC_LEN_ERR", "a local length error: a message was longer than the buffer posted for it", AGREEMENT),
    status(2, "LOC_QP_OP_ERR", "the local queue pair could not execute the request", FIRMWARE),
    status(3, "LOC_EEC_OP_ERR", "a local error of an end-to-end context", FIRMWARE),
    status(4, "LOC_PROT_ERR", "a local protection error: the HCA may not touch the local buffer, because its memory is not (or no longer) registered", REGISTRATION),
    status(
        5,
        "WR_FLUSH_ERR",
        "a flushed request: the queue pair was already in its error state",
        "The first completion that is not a flush, on this rank or on its peer, names the cause.",
    ),
    status(6, "MW_BIND_ERR", "a memory window could not be bound", FIRMWARE),
    status(7, "BAD_RESP_ERR", "a bad response from the peer's HCA", FIRMWARE),
    status(8, "LOC_ACCESS_ERR", "a local access error: the peer wrote to memory that does not allow it", REGISTRATION),
    status(9, "REM_INV_REQ_ERR", "an invalid request at the peer: its HCA refused the message, for instance because no buffer of that size was posted", AGREEMENT),
    status(10, "REM_ACCESS_ERR", "a remote access error: the peer's HCA refused access to the peer's memory (wrong key, freed or unregistered buffer)", REGISTRATION),
    status(11, "REM_OP_ERR", "a remote operation error: the peer's HCA could not complete the request", FIRMWARE),
    status(12, "RETRY_EXC_ERR", "retries exhausted: the peer never answered", "Look at the path: GID, MTU, link, switch, and whether the peer's process is alive."),
    status(13, "RNR_RETRY_EXC_ERR", "the peer was not ready to receive for too long", "The peer's process is stuck or slow; look at its log and stack."),
    status(14, "LOC_RDD_VIOL_ERR", "a local domain violation", FIRMWARE),
    status(15, "REM_INV_RD_REQ_ERR", "an invalid domain request at the peer", FIRMWARE),
    status(16, "REM_ABORT_ERR", "the peer aborted the operation", "Look at the peer's log."),
    status(17, "INV_EECN_ERR", "an invalid end-to-end context number", FIRMWARE),
    status(18, "INV_EEC_STATE_ERR", "an invalid state of an end-to-end context", FIRMWARE),
    status(19, "FATAL_ERR", "a fatal error of the transport", FIRMWARE),
    status(20, "RESP_TIMEOUT_ERR", "the peer's answer came too late", "Look at the path and at the peer's process."),
    status(21, "GENERAL_ERR", "an error that the HCA does not specify", FIRMWARE),
];

/// The status with this number.
pub fn status_of(code: i64) -> Option<&'static Status> {
    STATUSES.iter().find(|s| s.code == code)
}

/// Failed completions with a status that satisfies `test`.
pub fn completions(ask: Ask<'_>, test: impl Fn(i64) -> bool) -> Vec<Hit<'_>> {
    ask.hits("ib.completion").into_iter().filter(|h| h.num("status").is_some_and(&test)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gids_are_read_by_what_they_reach() {
        assert_eq!(Gid::parse("::ffff:192.0.2.7"), Some(Gid::Mapped(Ipv4Addr::new(192, 0, 2, 7))));
        assert!(matches!(Gid::parse("fe80::1:2ff:fe03:4"), Some(Gid::LinkLocal(_))));
        assert!(matches!(Gid::parse("fd00:12::5"), Some(Gid::Ipv6(_))));
        assert_eq!(Gid::parse("::"), Some(Gid::Empty));
        assert_eq!(Gid::parse("::ffff:x.x.x.x"), Some(Gid::Masked));
        assert_eq!(Gid::parse("N/A"), None);
    }

    #[test]
    fn halves_of_a_queue_pair_line_are_network_bytes() {
        assert_eq!(Gid::decode("0/2010A8C0FFFF0000"), Some(Gid::Mapped(Ipv4Addr::new(192, 168, 16, 32))));
        assert!(matches!(Gid::decode("80FE/1A8A41FEFF21A75E"), Some(Gid::LinkLocal(_))));
        assert_eq!(Gid::decode("0/0"), Some(Gid::Empty));
        assert_eq!(Gid::decode("0/2010A8C0FFFF00001"), None);
        assert_eq!(Gid::decode("x"), None);
    }

    #[test]
    fn classes_and_subnets() {
        let gid = |text: &str| Gid::parse(text).unwrap();
        assert!(gid("fe80::1").classes_differ(gid("::ffff:10.0.0.1")));
        assert!(!gid("fe80::1").classes_differ(gid("fe80::2")));
        assert!(!gid("::").classes_differ(gid("fe80::2")));
        assert_eq!(gid("::ffff:10.0.0.1").subnet(), gid("::ffff:10.0.0.9").subnet());
        assert_ne!(gid("::ffff:10.0.0.1").subnet(), gid("::ffff:10.0.1.1").subnet());
        assert_eq!(gid("fe80::1").subnet(), None);
    }

    #[test]
    fn device_lists_of_all_forms() {
        let names = |list: &str| devices(list).into_iter().map(|d| (d.index, d.name, d.layer)).collect::<Vec<_>>();
        assert_eq!(names("[0]mlx5_0:1/RoCE [1]ibp0:1/IB/SHARP [RO]"), vec![(Some(0), "mlx5_0".to_owned(), Layer::Roce), (Some(1), "ibp0".to_owned(), Layer::InfiniBand)]);
        assert_eq!(names("[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]").len(), 2);
        assert!(devices("").is_empty());
    }
}
