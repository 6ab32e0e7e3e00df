//! Reads the facts: how sure it is, and what the evidence says.

use super::facts::{Facts, Failure, What};
use super::host;
use crate::rules::finding::{Confidence, Evidence};
use crate::rules::ib::{self, Gid, Layer};
use crate::rules::query::{Hit, ranks_of, ranks_text};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What is wrong, for the choice of fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The GID, or its index.
    Gid,
    /// A port that is down.
    Link,
    /// A port without an address.
    Address,
    /// The MTU.
    Mtu,
    /// No route between the two ends: subnet, rail, firewall, link.
    Path,
    /// Addresses of one kind in different subnets: rails, or cables that are networks of their own.
    Subnets,
    /// The attributes of the queue pair were refused; GID index or MTU.
    Attribute,
    /// InfiniBand: subnet manager, LID, partition.
    Fabric,
    /// RoCE and InfiniBand devices side by side.
    Mixed,
    /// Only that nothing was answered.
    NoAnswer,
}

/// The outcome.
pub struct Reading {
    /// What is wrong.
    pub fault: Fault,
    /// How sure.
    pub confidence: Confidence,
    /// The end of the title: what is wrong.
    pub what: String,
    /// Why that is so.
    pub why: String,
    /// The node at fault, as commands name it; empty if both ends or none.
    pub node: String,
    /// Lines beside the failures that prove it.
    pub proof: Vec<Evidence>,
    /// The finding whose consequence this probably is.
    pub caused_by: Option<&'static str>,
}

impl Reading {
    pub(super) fn new(fault: Fault, confidence: Confidence, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { fault, confidence, what: what.into(), why: why.into(), node: String::new(), proof: Vec::new(), caused_by: None }
    }

    pub(super) fn with(mut self, proof: impl IntoIterator<Item = Evidence>) -> Self {
        self.proof.extend(proof);
        self
    }
}

/// Names of MTU enums.
pub fn mtu_bytes(value: i64) -> String {
    match value {
        1..=5 => (128 << value).to_string(),
        other => format!("enum {other}"),
    }
}

/// The strongest reading first.
pub fn read(facts: &Facts<'_>) -> Reading {
    if facts.layer == Some(Layer::InfiniBand) {
        return host::unmanaged(facts).unwrap_or_else(|| infiniband(facts));
    }
    if let Some(reading) = classes(facts).or_else(|| empty(facts)).or_else(|| beyond(facts)) {
        return reading;
    }
    if let Some(mut reading) = host::read(facts).or_else(|| mtu(facts)).or_else(|| pinned(facts)) {
        // Differing values that data passed with are no proof.
        if facts.only_unanswered() && (facts.worked_before() || facts.silent_peer().is_some()) {
            doubt(facts, &mut reading);
        }
        return reading;
    }
    let likely = mixed(facts).or_else(|| link_local(facts)).or_else(|| subnets(facts)).or_else(|| errno(facts));
    let mut reading = likely.unwrap_or_else(|| no_answer(facts));
    if let Some(proof) = host::all_right(facts) {
        // A fault of addresses or sizes is refuted; one on the way is not.
        if matches!(reading.fault, Fault::Gid | Fault::Attribute | Fault::NoAnswer) {
            reading.confidence = Confidence::Possible;
            reading.fault = Fault::Path;
        }
        reading.why.push_str(" The hosts' facts show active links, right GIDs and no difference in MTU at both ends, so look at the way between them (switch, VLAN, firewall) and whether the peer's process was alive.");
        reading.proof.extend(proof);
    }
    if facts.only_unanswered() {
        doubt(facts, &mut reading);
    } else if facts.lead().is_hearsay() {
        reading.confidence = Confidence::Possible;
        reading.why.push_str(" The text names the call alone, outside of any line of NCCL: the log itself, with NCCL_DEBUG=WARN, says what it answered.");
    }
    reading
}

/// fe80 on one side, an IPv4 address on the other.
fn classes(facts: &Facts<'_>) -> Option<Reading> {
    let pair = facts.pairs().find(|(_, l, r)| l.classes_differ(*r)).map(|(f, l, r)| (f.hit.evidence(), l, r));
    let across = || {
        let ends: Vec<_> = facts.ends.iter().filter_map(|e| Some((e, e.gid?))).collect();
        ends.iter().find_map(|(a, g)| {
            ends.iter().find(|(b, h)| a.dev == b.dev && a.hit.host() != b.hit.host() && g.classes_differ(*h)).map(|(b, h)| (vec![a.hit.evidence(), b.hit.evidence()], *g, *h))
        })
    };
    // The lines of other queue pairs count only where the failures do not print their own GIDs.
    let known = facts.pairs().next().is_some();
    let (proof, local, remote) = pair.map(|(e, l, r)| (vec![e], l, r)).or_else(|| if known { None } else { across() })?;
    let text = format!(
        "One end uses the GID {local}, the other {remote}. A link-local GID is RoCE v1 (or reaches only its own link), the other is a routable RoCE v2 address: packets of one kind never arrive at the other.{}",
        pinned_words(facts)
    );
    Some(Reading::new(Fault::Gid, Confidence::Certain, "the two ends use GIDs of different kinds", text).with(proof).with(pins(facts)))
}

/// The index names an entry that holds nothing.
fn empty(facts: &Facts<'_>) -> Option<Reading> {
    let f = facts.failures.iter().find(|f| f.local == Some(Gid::Empty) || (f.local.is_some() && f.remote == Some(Gid::Empty)))?;
    let index = f.gid_index.map_or_else(|| "the GID index in use".to_owned(), |n| format!("GID index {n}"));
    let side = if f.local == Some(Gid::Empty) { "here" } else { "at the peer" };
    let why = format!(
        "The entry of {index} is empty (`::`) {side}, so the queue pair has no address to send from{}. The GID table moves with boot order, link events and addresses; an index that was right once may be empty now.{}",
        f.errno.map_or(String::new(), |n| format!(" and the kernel refuses it with errno {n}")),
        pinned_words(facts)
    );
    let node = if side == "here" { f.hit.host().to_owned() } else { String::new() };
    Some(Reading { node, ..Reading::new(Fault::Gid, Confidence::Certain, format!("{index} is empty"), why).with(pins(facts)) })
}

/// The index is beyond the table.
fn beyond(facts: &Facts<'_>) -> Option<Reading> {
    let f = facts.failures.iter().find(|f| f.what == What::GidQuery)?;
    let pin = facts.pinned.iter().find(|s| s.proc == f.hit.proc).or(facts.pinned.first());
    let (confidence, index) = match pin {
        Some(s) => (Confidence::Certain, format!("GID index {} (NCCL_IB_GID_INDEX)", s.value)),
        None => (Confidence::Likely, "the GID index in use".to_owned()),
    };
    let why = format!("The HCA could not read the GID of {index}: the table has no such entry{}.", if pin.is_some() { "" } else { ", or the device no longer answers" });
    Some(Reading { node: f.hit.host().to_owned(), ..Reading::new(Fault::Gid, confidence, format!("{index} does not exist"), why).with(pins(facts)) })
}

fn mtu(facts: &Facts<'_>) -> Option<Reading> {
    let (dev, values) = facts.mtu_mismatch()?;
    let said: Vec<String> = values.iter().map(|(mtu, end)| format!("{} on {}", mtu_bytes(*mtu), end.hit.host())).collect();
    let why = format!(
        "The queue pairs of device {dev} report an active MTU of {}. Small packets pass and large ones are lost where a port or a switch on the way takes less than the sender believes; the sender repeats them until it gives up.",
        said.join(" and ")
    );
    let proof: Vec<Evidence> = values.values().map(|e| e.hit.evidence()).collect();
    Some(Reading::new(Fault::Mtu, Confidence::Certain, format!("the ends' MTUs differ: {}", said.join(", ")), why).with(proof))
}

/// Nodes were told different indexes, and nothing shows that each is right on its node.
fn pinned(facts: &Facts<'_>) -> Option<Reading> {
    let values = facts.pinned_differ()?;
    if host::pins_are_right(facts) {
        return None;
    }
    if facts.pairs().any(|(_, l, r)| !matches!(l, Gid::Empty) && !l.classes_differ(r)) {
        return None;
    }
    let said: Vec<String> = values.iter().map(|(value, hosts)| format!("{value} on {}", hosts.iter().copied().collect::<Vec<_>>().join(", "))).collect();
    let why = format!(
        "NCCL_IB_GID_INDEX is set to {}. Where these entries are of different kinds (link-local RoCE v1, IPv4 RoCE v2) the ends cannot reach each other.",
        said.join(" and ")
    );
    Some(Reading::new(Fault::Gid, Confidence::Certain, format!("nodes pin different GID indexes ({})", said.join("; ")), why).with(pins(facts)))
}

/// InfiniBand and RoCE devices are used as if they were rails of one fabric.
fn mixed(facts: &Facts<'_>) -> Option<Reading> {
    if !facts.mixed {
        return None;
    }
    let lists = facts.ask.hits("ib.using");
    let devices = ib::used(&lists);
    let names = |layer: Layer| devices.iter().filter(|d| d.layer == layer).map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
    let why = format!(
        "NCCL uses InfiniBand devices ({}) and RoCE devices ({}) side by side as if they were rails of one fabric. The RoCE port often has no path to the other node, or only a link-local GID; its transfers get no answer.",
        names(Layer::InfiniBand),
        names(Layer::Roce)
    );
    Some(Reading::new(Fault::Mixed, Confidence::Likely, "InfiniBand and RoCE devices are mixed", why).with(lists.first().map(Hit::evidence)))
}

/// Both ends link-local.
fn link_local(facts: &Facts<'_>) -> Option<Reading> {
    let local = |g: Gid| matches!(g, Gid::LinkLocal(_));
    let pair = facts.pairs().any(|(_, l, r)| local(l) && local(r));
    let ends = !facts.ends.is_empty() && facts.ends.iter().all(|e| e.gid.is_some_and(local));
    let printed = facts.pairs().next().is_some();
    if !pair && (!ends || printed) {
        return None;
    }
    let proof: Vec<Evidence> = facts.ends.iter().filter(|e| e.gid.is_some_and(local)).take(2).map(|e| e.hit.evidence()).collect();
    let why = format!(
        "Both ends use link-local GIDs (fe80::…), which is RoCE v1 or reaches only the same link. Most switches and routed fabrics carry only RoCE v2 with IPv4 addresses.{}{}",
        number_words(facts),
        pinned_words(facts)
    );
    Some(Reading::new(Fault::Gid, Confidence::Likely, "link-local GIDs (RoCE v1) are in use", why).with(pins(facts)).with(proof))
}

/// Addresses of the same kind in different subnets.
fn subnets(facts: &Facts<'_>) -> Option<Reading> {
    if host::one_network(facts) {
        return None;
    }
    let (_, local, remote) = facts.pairs().find(|(_, l, r)| l.subnet().zip(r.subnet()).is_some_and(|(a, b)| a != b))?;
    let why = format!(
        "The ends' GIDs are of the same kind but in different subnets ({local} and {remote}). Either there is no route between them (rails that are not connected to each other, a missing gateway), or a firewall or switch drops RoCE. The subnets are guessed from the first 24 bits; in a wider subnet the two are neighbours.{}",
        number_words(facts)
    );
    Some(Reading::new(Fault::Subnets, Confidence::Likely, "the ends are in different subnets", why))
}

/// What the kernel said.
fn errno(facts: &Facts<'_>) -> Option<Reading> {
    let (f, number) = numbered(facts)?;
    let (fault, what, why) = meaning(number, f.next_state == Some("INIT"));
    let mut reading = Reading::new(fault, Confidence::Likely, what, format!("{why}{}", pinned_words(facts))).with(pins(facts));
    if f.what == What::Retry {
        let last = f.hit.entry.last.num("retry").unwrap_or(0);
        let _ = write!(reading.why, " NCCL was still repeating it (attempt {last}) when the log ended; without the NET subsystem these minutes are silent.");
    } else if number == 110 && facts.ask.version().is_some_and(|v| v >= (2, 24, 3)) {
        reading.why.push_str(" Since 2.24.3 NCCL repeats this about 34 times in silence before it prints the error.");
    }
    Some(reading)
}

/// The first failure to connect that has an error number.
fn numbered<'f, 'a>(facts: &'f Facts<'a>) -> Option<(&'f Failure<'a>, i64)> {
    facts.failures.iter().filter(|f| f.what != What::NoAnswer).find_map(|f| Some((f, f.errno?)))
}

/// The first error number.
pub fn number_of(facts: &Facts<'_>) -> Option<i64> {
    numbered(facts).map(|(_, n)| n)
}

/// The meaning of the error number, where another reading leads.
fn number_words(facts: &Facts<'_>) -> String {
    numbered(facts).map_or(String::new(), |(f, n)| format!(" {}", meaning(n, f.next_state == Some("INIT")).2))
}

/// An error number: what is wrong, in short, and in full.
fn meaning(number: i64, init: bool) -> (Fault, &'static str, &'static str) {
    match number {
        110 => (
            Fault::Path,
            "the peer's address does not answer",
            "Errno 110: the address of the other end could not be resolved on the HCA's interface. The ends are in subnets or rails that are not connected, the link is down, ARP or ND is dropped, or a GID index names the wrong address.",
        ),
        22 if init => (
            Fault::Attribute,
            "the port or partition was refused",
            "Errno 22 on the way to INIT: the driver refuses port number or partition key, before any address is used. A pinned NCCL_IB_PKEY, a port that is not up, or a device that is not RoCE-ready is the usual reason; if the state in the line is missing elsewhere, a wrong GID index gives the same number.",
        ),
        22 => (
            Fault::Attribute,
            "GID index or MTU was refused",
            "Errno 22: the driver refuses the attributes of the queue pair. The GID index names an entry that is empty or of the wrong kind, or the MTU does not fit the port.",
        ),
        19 => (
            Fault::Gid,
            "the GID's device is gone",
            "Errno 19: the GID index names an entry without a network device. A pinned index no longer fits a GID table that moved, or the interface was taken down or renamed.",
        ),
        61 => (
            Fault::Gid,
            "the GID entry is empty",
            "Errno 61: the GID index names an empty entry on this end or the peer's. The GID table moves with boot order, link events and addresses.",
        ),
        101 => (
            Fault::Path,
            "no route to the peer's GID",
            "Errno 101: this node has no route to the subnet of the peer's GID: different kinds of GID, different subnets without a gateway, or an interface that lost its address.",
        ),
        113 => (Fault::Path, "no route to the peer's GID", "Errno 113: the peer's address is in a known subnet, but nobody answers for it: other rail, link down, or a firewall."),
        _ => (Fault::Path, "the queue pair was refused", "The error number is not one of the usual ones; the kernel log of this node says more."),
    }
}

/// Only status 12, or an error without a number.
fn no_answer(facts: &Facts<'_>) -> Reading {
    if !facts.any(What::NoAnswer) {
        return Reading::new(
            Fault::Path,
            Confidence::Likely,
            "the queue pair was refused",
            format!("The driver refused to connect the queue pair and the log does not say why; GID index, route and link are the usual reasons.{}", pinned_words(facts)),
        );
    }
    let base =
        "Completion status 12 means that the peer's HCA never acknowledged: packets are lost on the way (GID, MTU, link, switch or firewall), or nobody lives there any more.";
    Reading::new(Fault::NoAnswer, Confidence::Likely, "the peer never answers (status 12)", base).with(pins(facts))
}

/// A dead peer gives status 12 as well.
fn doubt(facts: &Facts<'_>, reading: &mut Reading) {
    if let Some(p) = facts.silent_peer() {
        let proc = &facts.ask.job.procs[p];
        let who = proc.rank.map_or_else(|| format!("a process on {}", proc.host), |r| format!("rank {r} on {}", proc.host));
        reading.confidence = Confidence::Possible;
        reading.caused_by = Some("peer-crash");
        let _ = write!(reading.why, " The log of {who} just ends while others go on: a dead process is the better explanation here.");
    } else if facts.other_death() {
        reading.confidence = Confidence::Possible;
        reading.why.push_str(" Another failure in these logs ended a rank, which gives its peers the same status.");
    } else if facts.worked_before() {
        reading.confidence = Confidence::Possible;
        reading.why.push_str(" Data had passed before, so the addresses were right at the start: look for a link event, an overloaded or lossy fabric, settings that differ between the ranks, or a rank that ended.");
    } else {
        // A dead process complains of nobody: where only one side speaks, the other may be gone.
        if reading.fault == Fault::NoAnswer && !facts.both_sides() {
            reading.confidence = Confidence::Possible;
        }
        reading.why.push_str(" If a rank died about half a minute earlier, that is the cause instead; its log tells.");
    }
}

fn infiniband(facts: &Facts<'_>) -> Reading {
    let lead = facts.lead();
    let number = lead.errno.map_or(String::new(), |n| format!(" (errno {n})"));
    let why = format!(
        "The port is InfiniBand, where the subnet manager gives the addresses: no GID index is involved.{} Look at the subnet manager, the port's LID and state, the partition (P_Key) and the cable.",
        if lead.what == What::NoAnswer { " Status 12 means that the peer's HCA never acknowledged." } else { " The queue pair could not be connected." }
    );
    let what = if lead.what == What::NoAnswer { "no answer over InfiniBand (status 12)".to_owned() } else { format!("no path over InfiniBand{number}") };
    let mut reading = Reading::new(Fault::Fabric, Confidence::Likely, what, why);
    if lead.what == What::NoAnswer {
        doubt(facts, &mut reading);
    }
    reading
}

fn pinned_words(facts: &Facts<'_>) -> String {
    let values: BTreeSet<&str> = facts.pinned.iter().map(|s| s.value).collect();
    match values.len() {
        0 => String::new(),
        1 => format!(" NCCL_IB_GID_INDEX={} was set by the user: a number that means something else on every node.", values.first().copied().unwrap_or_default()),
        _ => " NCCL_IB_GID_INDEX was set by the user, with different values.".to_owned(),
    }
}

/// One line for every pinned value.
fn pins(facts: &Facts<'_>) -> Vec<Evidence> {
    let mut seen = BTreeSet::new();
    facts.pinned.iter().filter(|s| seen.insert(s.value)).take(2).map(crate::rules::query::SettingHit::evidence).collect()
}

/// `rank 0 on node01, mlx5_0`: who fails.
pub fn subject(facts: &Facts<'_>) -> String {
    let hits: Vec<Hit<'_>> = facts.failures.iter().map(|f| f.hit).collect();
    let ranks = ranks_of(&hits);
    let hcas: BTreeSet<&str> = facts.failures.iter().filter_map(|f| f.hca).collect();
    let who = if ranks.is_empty() { crate::rules::query::hosts_of(&hits).first().cloned().unwrap_or_else(|| "a process".to_owned()) } else { ranks_text(&ranks) };
    match (hcas.len(), hcas.first()) {
        (1, Some(hca)) => format!("{who}, {hca}"),
        _ => who,
    }
}

/// A failure as evidence, and those of other ranks, connecting first.
pub fn evidence(facts: &Facts<'_>) -> Vec<Evidence> {
    let lead: &Failure<'_> = facts.lead();
    let mut seen = BTreeSet::new();
    let rest = facts.failures.iter().filter(|f| f.what == lead.what && f.hit.proc != lead.hit.proc).chain(facts.failures.iter());
    std::iter::once(lead).chain(rest).filter(|f| seen.insert((f.hit.proc, f.what as u8))).take(4).map(|f| f.hit.evidence()).collect()
}
