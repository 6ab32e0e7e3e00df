//! Settings across ranks.

use crate::rules::finding::Evidence;
use crate::rules::network::{self, names_text};
use crate::rules::query::{Ask, ranks_text};
use std::collections::{BTreeMap, BTreeSet};

/// What a setting decides, and so how a difference shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matter {
    /// How ranks of one node connect.
    Local,
    /// Which network is used.
    Network,
    /// How many channels there are.
    Channels,
    /// How much goes in one message, and by which algorithm.
    Sizes,
    /// How memory is shared.
    Memory,
}

impl Matter {
    /// What must agree.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Local => "Ranks of one node must choose the same transport between them, so this setting must be the same on all of them.",
            Self::Network => "All ranks must use the same network, so this setting must be the same on all nodes.",
            Self::Channels => "All ranks must have the same number of channels, so this setting must be the same everywhere.",
            Self::Sizes => "Both ends of a connection must cut messages alike and use the same algorithm, so this setting must be the same everywhere.",
            Self::Memory => "Ranks of one node must share memory in the same way, so this setting must be the same on all of them.",
        }
    }

    /// What a difference leads to.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Local => "One side set up P2P and the other shared memory; the segment that one looks for was never made.",
            Self::Network => "One side speaks NET/IB and the other NET/Socket; they cannot connect.",
            Self::Channels => "The ranks' lists of connections have different lengths, which shows as a truncated message or an empty address.",
            Self::Sizes => "The two ends disagree on the size of a message.",
            Self::Memory => "The side without it cannot use what the other offers; the error names memory though there is enough.",
        }
    }
}

/// Variables that must agree.
const MATTERS: &[(&str, Matter)] = &[
    ("NCCL_IB_DISABLE", Matter::Network),
    ("NCCL_NET", Matter::Network),
    ("NCCL_NET_PLUGIN", Matter::Network),
    ("NCCL_P2P_DISABLE", Matter::Local),
    ("NCCL_P2P_LEVEL", Matter::Local),
    ("NCCL_SHM_DISABLE", Matter::Local),
    ("NCCL_P2P_DIRECT_DISABLE", Matter::Local),
    ("NCCL_MIN_NCHANNELS", Matter::Channels),
    ("NCCL_MAX_NCHANNELS", Matter::Channels),
    ("NCCL_MIN_NRINGS", Matter::Channels),
    ("NCCL_MAX_NRINGS", Matter::Channels),
    ("NCCL_MIN_CTAS", Matter::Channels),
    ("NCCL_MAX_CTAS", Matter::Channels),
    ("NCCL_NCHANNELS_PER_NET_PEER", Matter::Channels),
    ("NCCL_BUFFSIZE", Matter::Sizes),
    ("NCCL_LL_BUFFSIZE", Matter::Sizes),
    ("NCCL_LL128_BUFFSIZE", Matter::Sizes),
    ("NCCL_P2P_NET_CHUNKSIZE", Matter::Sizes),
    ("NCCL_ALGO", Matter::Sizes),
    ("NCCL_PROTO", Matter::Sizes),
    ("NCCL_NTHREADS", Matter::Sizes),
    ("NCCL_IB_SPLIT_DATA_ON_QPS", Matter::Sizes),
    ("NCCL_CUMEM_ENABLE", Matter::Memory),
    ("NCCL_CUMEM_HOST_ENABLE", Matter::Memory),
];

/// A setting that is not the same everywhere.
#[derive(Debug)]
pub struct Difference<'a> {
    /// Variable.
    pub name: &'static str,
    /// What it decides.
    pub matter: Matter,
    /// Processes of the smaller side, or those that set it where the sides are equal.
    pub odd: BTreeSet<usize>,
    /// Values with their processes; `None` where it is not set.
    pub values: Vec<(Option<&'a str>, BTreeSet<usize>)>,
    /// Its lines, one for each value.
    pub evidence: Vec<Evidence>,
}

/// All differences that matter, in the order of [`MATTERS`].
pub fn differences(ask: Ask<'_>) -> Vec<Difference<'_>> {
    // Only processes that say enough for a missing line to mean something.
    let speakers: BTreeSet<usize> =
        ask.procs().filter(|(_, p)| p.nccl && p.log.comms.iter().any(|c| c.net.is_some() || c.start.is_some() || c.complete.is_some())).map(|(i, _)| i).collect();
    let shows_env = speakers.iter().any(|p| ask.job.procs[*p].log.settings.keys().any(|k| k.in_force));
    if speakers.len() < 2 || !shows_env {
        return Vec::new();
    }
    MATTERS.iter().filter_map(|(name, matter)| difference(ask, name, *matter, &speakers)).collect()
}

fn difference<'a>(ask: Ask<'a>, name: &'static str, matter: Matter, speakers: &BTreeSet<usize>) -> Option<Difference<'a>> {
    let mut of: BTreeMap<usize, (&'a str, Evidence)> = BTreeMap::new();
    // A last line without its end may be cut within the value.
    let whole = |s: &crate::rules::query::SettingHit<'_>| {
        let end = s.sample.at.offset + s.sample.text.len() as u64;
        ask.job.streams.get(s.sample.at.stream as usize).is_none_or(|stream| end < stream.bytes)
    };
    for s in ask.settings(name).into_iter().filter(|s| s.in_force && speakers.contains(&s.proc) && whole(s)) {
        of.insert(s.proc, (s.value, s.evidence()));
    }
    if of.is_empty() {
        return None;
    }
    // P2P, SHM and memory sharing matter inside a node.
    let local = matches!(matter, Matter::Local | Matter::Memory);
    let hosts: BTreeSet<&str> = of.keys().map(|p| network::host_of(ask, *p)).collect();
    for host in hosts {
        let among: Vec<usize> = speakers.iter().copied().filter(|p| !local || network::host_of(ask, *p) == host).collect();
        let mut groups: BTreeMap<Option<&'a str>, BTreeSet<usize>> = BTreeMap::new();
        for p in among {
            groups.entry(of.get(&p).map(|(v, _)| *v)).or_default().insert(p);
        }
        if groups.len() < 2 || harmless(name, &groups) {
            continue;
        }
        let values: Vec<(Option<&'a str>, BTreeSet<usize>)> = groups.into_iter().collect();
        // The smaller side is the odd one; where equal, the one that set it.
        let odd = values.iter().min_by_key(|(v, procs)| (procs.len(), v.is_none())).map(|(_, procs)| procs.clone()).unwrap_or_default();
        let evidence = values.iter().filter_map(|(_, procs)| procs.iter().find_map(|p| of.get(p)).map(|(_, e)| e.clone())).collect();
        return Some(Difference { name, matter, odd, values, evidence });
    }
    None
}

/// Set to its default on some ranks and unset on the others.
fn harmless(name: &str, groups: &BTreeMap<Option<&str>, BTreeSet<usize>>) -> bool {
    let default = |v: &str| matches!((name, v), ("NCCL_IB_DISABLE" | "NCCL_P2P_DISABLE" | "NCCL_SHM_DISABLE" | "NCCL_P2P_DIRECT_DISABLE", "0"));
    groups.keys().all(|v| v.is_none_or(default))
}

impl Difference<'_> {
    /// `NCCL_BUFFSIZE=1048576 on rank 1 only`, or both values.
    pub fn title(&self, ask: Ask<'_>) -> String {
        let set: Vec<&(Option<&str>, BTreeSet<usize>)> = self.values.iter().filter(|(v, _)| v.is_some()).collect();
        if let [(Some(value), procs)] = set.as_slice() {
            return format!("{}={value} on {} only", self.name, who(ask, procs));
        }
        let parts: Vec<String> = set.iter().map(|(v, procs)| format!("{} on {}", v.unwrap_or_default(), who(ask, procs))).collect();
        format!("{} differs: {}", self.name, names_text(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

fn who(ask: Ask<'_>, procs: &BTreeSet<usize>) -> String {
    let ranks: Vec<u32> = procs.iter().filter_map(|p| ask.job.procs[*p].rank).collect();
    let hosts = network::hosts_of(ask, procs);
    if ranks.is_empty() && !hosts.is_empty() { names_text(&hosts.iter().map(String::as_str).collect::<Vec<_>>()) } else { ranks_text(&ranks) }
}
