//! What the log says about queue pairs: the failures, the ends that were printed, the pinned index.

use crate::digest::Mark;
use crate::event::tables::PROOF_OF_COLLECTIVE;
use crate::rules::ib::{self, Gid, Layer};
use crate::rules::network;
use crate::rules::query::{Ask, Hit, SettingHit};
use std::collections::{BTreeMap, BTreeSet};

/// What went wrong with a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It could not be brought to its next state.
    Connect,
    /// The same, and NCCL was still trying when the log ended.
    Retry,
    /// The peer never answered (completion status 12).
    NoAnswer,
    /// The GID of the wanted index could not be read.
    GidQuery,
}

/// One failure.
pub struct Failure<'a> {
    /// The entry that holds it.
    pub hit: Hit<'a>,
    /// What went wrong.
    pub what: What,
    /// The system's error number.
    pub errno: Option<i64>,
    /// Device.
    pub hca: Option<&'a str>,
    /// This end's GID.
    pub local: Option<Gid>,
    /// The other end's GID.
    pub remote: Option<Gid>,
    /// Index of this end's GID.
    pub gid_index: Option<i64>,
    /// State that could not be reached.
    pub next_state: Option<&'a str>,
    /// Address of the peer's handshake socket.
    pub peer: Option<&'a str>,
}

/// An end of a queue pair as its owner printed it.
pub struct End<'a> {
    /// The entry.
    pub hit: Hit<'a>,
    /// Device number in this process's list.
    pub dev: i64,
    /// MTU enum.
    pub mtu: i64,
    /// GID.
    pub gid: Option<Gid>,
}

/// All of it.
pub struct Facts<'a> {
    /// The job.
    pub ask: Ask<'a>,
    /// The failures, in order.
    pub failures: Vec<Failure<'a>>,
    /// The ends on RoCE.
    pub ends: Vec<End<'a>>,
    /// `NCCL_IB_GID_INDEX` where it names an entry.
    pub pinned: Vec<SettingHit<'a>>,
    /// Link layer of the failing devices, if it is known and the same.
    pub layer: Option<Layer>,
    /// One process uses RoCE and InfiniBand devices side by side.
    pub mixed: bool,
}

impl<'a> Facts<'a> {
    /// Gathers them; `None` if no queue pair failed.
    pub fn gather(ask: Ask<'a>) -> Option<Self> {
        let failures = failures(ask);
        if failures.is_empty() {
            return None;
        }
        let layers: BTreeSet<Option<Layer>> = failures.iter().map(|f| layer_of(ask, f)).collect();
        let layer = if layers.len() == 1 { layers.into_iter().next().flatten() } else { None };
        let mixed = ask.hits("ib.using").iter().any(|h| ib::devices(h.get("list").unwrap_or_default()).iter().map(|d| d.layer).collect::<BTreeSet<_>>().len() > 1);
        let pinned = ask.settings("NCCL_IB_GID_INDEX").into_iter().filter(|s| s.value.parse::<i64>().is_ok_and(|n| n >= 0)).collect();
        Some(Self { ask, failures, ends: ends(ask), pinned, layer, mixed })
    }

    /// Whether any failure is of this kind.
    pub fn any(&self, what: What) -> bool {
        self.failures.iter().any(|f| f.what == what)
    }

    /// The first failure of a kind that names the state of affairs best: connecting before completions.
    pub fn lead(&self) -> &Failure<'a> {
        let order = [What::GidQuery, What::Connect, What::Retry, What::NoAnswer];
        order.iter().find_map(|w| self.failures.iter().find(|f| f.what == *w)).unwrap_or(&self.failures[0])
    }

    /// Pairs of GIDs that were printed for failing queue pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&Failure<'a>, Gid, Gid)> {
        self.failures.iter().filter_map(|f| Some((f, f.local?, f.remote?)))
    }

    /// MTU enums of one device that differ between hosts: (device, value → an end).
    pub fn mtu_mismatch(&self) -> Option<(i64, BTreeMap<i64, &End<'a>>)> {
        let failing = self.failing_devices();
        let devices: BTreeSet<i64> = self.ends.iter().map(|e| e.dev).filter(|d| failing.is_empty() || failing.contains(d)).collect();
        devices.into_iter().find_map(|dev| {
            let mut by_host: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
            let mut values = BTreeMap::new();
            for end in self.ends.iter().filter(|e| e.dev == dev) {
                by_host.entry(end.hit.host()).or_default().insert(end.mtu);
                values.entry(end.mtu).or_insert(end);
            }
            let agree_inside = by_host.values().all(|v| v.len() == 1);
            (by_host.len() > 1 && agree_inside && values.len() > 1).then_some((dev, values))
        })
    }

    /// Numbers of the devices that failed, where the failures name them and the process listed them.
    fn failing_devices(&self) -> BTreeSet<i64> {
        let lists = self.ask.hits("ib.using");
        let number = |f: &Failure<'_>| {
            let hca = f.hca?;
            let own = lists.iter().filter(|h| h.proc == f.hit.proc);
            own.flat_map(|h| ib::devices(h.get("list").unwrap_or_default())).find(|d| d.name == hca)?.index.map(i64::from)
        };
        self.failures.iter().filter_map(number).collect()
    }

    /// Indexes that hosts pinned, if they are not the same: index → hosts.
    pub fn pinned_differ(&self) -> Option<BTreeMap<&'a str, BTreeSet<&'a str>>> {
        let mut by_value: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for s in &self.pinned {
            by_value.entry(s.value).or_default().insert(s.host());
        }
        let hosts: BTreeSet<&str> = by_value.values().flatten().copied().collect();
        (by_value.len() > 1 && hosts.len() > 1).then_some(by_value)
    }

    /// Data had passed before: a collective finished, or a rank went through to its end.
    pub fn worked_before(&self) -> bool {
        self.ask.procs().any(|(_, p)| {
            p.log.ledger.iter().any(|e| PROOF_OF_COLLECTIVE.contains(&e.kind.as_str())) || p.log.comms.iter().any(|c| c.end.as_ref().is_some_and(|(aborted, _)| !aborted))
        })
    }

    /// Something else killed a rank: its peers see status 12 as well. What a launcher does to the others afterwards
    /// does not count.
    pub fn other_death(&self) -> bool {
        const FATAL: [&str; 7] = ["cuda.failure", "torch.oom", "kernel.xid", "kernel.gpu_lost", "app.oom_killer", "kernel.oom_kill", "app.segfault"];
        let after = |at: Mark| self.failures.iter().any(|f| f.hit.at().stream == at.stream && f.hit.at().line < at.line);
        self.ask.any_of(&FATAL).iter().any(|h| !after(h.at()))
    }

    /// A process whose log just ends and which may be the peer that no longer answers.
    pub fn silent_peer(&self) -> Option<usize> {
        let hits: Vec<Hit<'_>> = self.failures.iter().map(|f| f.hit).collect();
        ib::silent_peer(self.ask, &hits)
    }

    /// Ranks of two hosts got no answer, or gave up in good order, so both sides were alive.
    pub fn both_sides(&self) -> bool {
        let unanswered = self.failures.iter().filter(|f| f.what == What::NoAnswer).map(|f| f.hit.host());
        let ended = self.ask.procs().filter(|(_, p)| p.log.comms.iter().any(|c| c.end.is_some())).map(|(_, p)| p.host.as_str());
        let hosts: BTreeSet<&str> = unanswered.chain(ended).filter(|h| !h.is_empty()).collect();
        hosts.len() > 1
    }

    /// Only transfers failed; connecting went well.
    pub fn only_unanswered(&self) -> bool {
        self.failures.iter().all(|f| f.what == What::NoAnswer)
    }
}

/// Link layer of a failing device. Only RoCE prints GIDs with a completion.
fn layer_of(ask: Ask<'_>, f: &Failure<'_>) -> Option<Layer> {
    let proc = Some(f.hit.proc);
    ib::layer(ask, proc, f.hca).or_else(|| matches!(f.local, Some(Gid::Mapped(_) | Gid::Masked)).then_some(Layer::Roce))
}

impl Failure<'_> {
    /// Only the call's name stands there, outside of any line of NCCL: somebody may merely speak of it.
    pub fn is_hearsay(&self) -> bool {
        self.what == What::Connect && self.errno.is_none() && self.hca.is_none() && self.local.is_none() && self.hit.get("error").is_none() && self.hit.entry.first.level.is_none()
    }
}

fn failures(ask: Ask<'_>) -> Vec<Failure<'_>> {
    let mut list = Vec::new();
    // Where all ranks took other networks, no queue pair was ever made.
    let without_rdma = !ask.job.nets.is_empty() && ask.job.nets.iter().all(|n| network::is_socket(n));
    for hit in ask.any_of(&["ib.modify_qp", "ib.modify_qp_retry", "ib.completion", "ib.retry_exceeded", "ib.query_failed"]) {
        let what = match hit.entry.kind.as_str() {
            "ib.modify_qp" => What::Connect,
            "ib.modify_qp_retry" if gave_in(hit) => What::Retry,
            "ib.completion" if hit.num("status") == Some(12) => What::NoAnswer,
            "ib.retry_exceeded" => What::NoAnswer,
            "ib.query_failed" if hit.get("what") == Some("gid") => What::GidQuery,
            _ => continue,
        };
        for sample in ib::records(&hit) {
            let get = |name: &str| sample.get(name).filter(|v| !v.is_empty() && *v != "N/A");
            let errno = sample.num("errno").or_else(|| get("error").and_then(number_of));
            // No memory for a queue pair is the limit on locked memory, never an address.
            if errno == Some(12) && what == What::Connect {
                continue;
            }
            list.push(Failure {
                hit,
                what,
                errno,
                hca: get("hca"),
                local: get("lgid").and_then(Gid::parse),
                remote: get("rgid").and_then(Gid::parse),
                gid_index: sample.num("gid_index").filter(|n| *n >= 0),
                next_state: get("next_state"),
                peer: get("peer"),
            });
        }
    }
    list.retain(|f: &Failure<'_>| !(without_rdma && f.is_hearsay()));
    list
}

/// Retries that no connection followed.
fn gave_in(hit: Hit<'_>) -> bool {
    let log = &hit.process().log;
    let connected = log.ledger.of("init.connected").any(|e| e.last.at > hit.entry.last.at);
    !connected && !log.comms.iter().any(|c| c.end.as_ref().is_some_and(|(aborted, _)| !aborted))
}

/// Number of an error of which only the text was printed.
fn number_of(error: &str) -> Option<i64> {
    const TEXTS: [(&str, i64); 11] = [
        ("Connection timed out", 110),
        ("Invalid argument", 22),
        ("No such device", 19),
        ("No data available", 61),
        ("Network is unreachable", 101),
        ("No route to host", 113),
        ("Cannot allocate memory", 12),
        ("Permission denied", 13),
        ("Device or resource busy", 16),
        ("Input/output error", 5),
        ("Operation not permitted", 1),
    ];
    TEXTS.iter().find(|(text, _)| error.contains(text)).map(|(_, n)| *n)
}

fn ends(ask: Ask<'_>) -> Vec<End<'_>> {
    let hits = ask.hits("ib.qp_info");
    hits.into_iter().filter_map(|hit| Some(End { hit, dev: hit.num("dev")?, mtu: hit.num("mtu")?, gid: hit.get("gid").and_then(Gid::decode) })).collect()
}
