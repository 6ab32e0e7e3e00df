//! What the facts of the hosts say of the ports in use: the link, the GID that an index means, the MTU.

use super::facts::{Facts, What};
use super::reading::{Fault, Reading, number_of};
use crate::digest::Line;
use crate::job::{NodeFacts, Rail};
use crate::rules::facts as hostfacts;
use crate::rules::finding::{Confidence, Evidence};
use crate::rules::ib::Gid;
use crate::rules::network;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// The ports that the job uses, as far as facts show them: those of the devices that failed, where the failures or the
/// library's lists name them; the only one of a node where nothing does.
pub fn ends<'a>(facts: &Facts<'a>) -> Vec<Rail<'a>> {
    let ask = facts.ask;
    let mut used: BTreeMap<Option<usize>, BTreeSet<&str>> = BTreeMap::new();
    for f in &facts.failures {
        used.entry(ask.job.procs[f.hit.proc].host_index).or_default().extend(f.hca.map(|h| h.split(':').next().unwrap_or(h)));
    }
    used.retain(|_, names| !names.is_empty());
    let mut listed: BTreeMap<Option<usize>, BTreeSet<&str>> = BTreeMap::new();
    for hit in ask.hits("ib.using") {
        listed.entry(ask.job.procs[hit.proc].host_index).or_default().extend(hit.entry.first.get("list").map(network::devices).unwrap_or_default());
    }
    hostfacts::nodes(ask).flat_map(|node| of_node(node, &used, &listed)).collect()
}

fn of_node<'a>(node: &'a NodeFacts, used: &BTreeMap<Option<usize>, BTreeSet<&str>>, listed: &BTreeMap<Option<usize>, BTreeSet<&str>>) -> Vec<Rail<'a>> {
    let rails = node.rails();
    let all: BTreeSet<&str> = listed.values().flatten().copied().collect();
    // What nobody could be told to own is compared by what any host uses.
    let mine = if node.host.is_some() { used.get(&node.host).or_else(|| listed.get(&node.host)) } else { Some(&all) };
    let Some(names) = mine.filter(|n| !n.is_empty()) else {
        return if rails.len() == 1 { rails } else { Vec::new() };
    };
    rails.into_iter().filter(|r| names.contains(r.hca)).collect()
}

/// What a fact shows to be wrong, strongest first.
pub fn read(facts: &Facts<'_>) -> Option<Reading> {
    let ends = ends(facts);
    down(facts, &ends).or_else(|| pinned(facts, &ends)).or_else(|| no_address(facts, &ends)).or_else(|| mtu(facts, &ends)).or_else(|| apart(facts, &ends))
}

fn line(facts: &Facts<'_>, line: &Line) -> Evidence {
    hostfacts::evidence(facts.ask, line)
}

fn name(rail: &Rail<'_>) -> String {
    format!("{} on {}", rail.hca, rail.node.title())
}

/// A port in use is not active.
pub fn down(facts: &Facts<'_>, ends: &[Rail<'_>]) -> Option<Reading> {
    let rail = ends.iter().find(|r| r.is_up() == Some(false))?;
    let state = rail.port.state.as_ref();
    let physical = rail.port.physical.as_ref().map_or(String::new(), |p| format!(", physical state {}", p.value));
    let proof = state.map(|s| &s.at).or_else(|| rail.interface.and_then(|i| i.up.as_ref()).map(|u| &u.at))?;
    let word = state.map_or("DOWN", |s| s.value.as_str());
    let why = format!(
        "The facts of {} say that port {} of {} is {word}{physical}. Nothing passes over a port that is not ACTIVE: cable, transceiver, switch port, or the interface was taken down.",
        rail.node.title(),
        rail.port.number,
        rail.hca
    );
    Some(Reading::new(Fault::Link, Confidence::Certain, format!("{} is {word}", name(rail)), why).with([line(facts, proof)]))
}

/// The pinned index means the wrong entry on a node.
fn pinned(facts: &Facts<'_>, ends: &[Rail<'_>]) -> Option<Reading> {
    for rail in ends.iter().filter(|r| !r.port.gids.is_empty() && r.is_roce()) {
        let Some(pin) = pin_of(facts, rail) else { continue };
        let entry = rail.port.gids.iter().find(|g| g.index == pin.1);
        if entry.is_some_and(|g| rail.fits(g)) {
            continue;
        }
        let right = rail.gid();
        let should = right
            .map_or_else(|| "the table holds no RoCE v2 entry with an IPv4 address at all".to_owned(), |g| format!("there, {}, which is the right one", hostfacts::gid_text(g)));
        let is = entry.map_or_else(|| format!("index {} is not in the table", pin.1), hostfacts::gid_text);
        let why = format!(
            "NCCL_IB_GID_INDEX={} was set, and on {} {is}; {should}. The number moves with boot order, link events and addresses and means something else on every node.",
            pin.1,
            name(rail)
        );
        let mut proof = vec![pin.0];
        proof.extend(entry.map(|g| line(facts, &g.at)));
        proof.extend(right.map(|g| line(facts, &g.at)));
        let what = format!("GID index {} is the wrong entry on {}", pin.1, rail.node.title());
        return Some(Reading { node: hostfacts::place(rail.node), ..Reading::new(Fault::Gid, Confidence::Certain, what, why).with(proof) });
    }
    None
}

/// The index that is pinned on a port's node. Where nothing tells which node it is, the one that all nodes pin.
fn pin_of(facts: &Facts<'_>, rail: &Rail<'_>) -> Option<(Evidence, u16)> {
    let own = |s: &&crate::rules::query::SettingHit<'_>| rail.node.host.is_some() && facts.ask.job.procs[s.proc].host_index == rail.node.host;
    let values: BTreeSet<&str> = facts.pinned.iter().map(|s| s.value).collect();
    // A setting without a host is a script's, and meant for all.
    let any = || facts.pinned.first().filter(|_| values.len() == 1);
    let pin = facts.pinned.iter().find(own).or_else(any)?;
    Some((pin.evidence(), pin.value.parse().ok()?))
}

/// A port in use has no address that RoCE v2 could use.
fn no_address(facts: &Facts<'_>, ends: &[Rail<'_>]) -> Option<Reading> {
    let rail = ends.iter().find(|r| !r.port.gids.is_empty() && r.is_roce() && r.gid().is_none())?;
    let shown = rail.port.gids.last()?;
    // Without the types, an IPv4 address may still be there.
    if rail.port.gids.iter().any(|g| g.ipv4().is_some() && g.kind.is_none()) {
        return None;
    }
    let interface = rail.netdev().map_or_else(|| "its interface".to_owned(), str::to_owned);
    let why = format!(
        "The GID table of {} holds no RoCE v2 entry with an IPv4 address: {interface} has none, or it came after the device was opened. What is left are link-local entries, which reach no routed peer.",
        name(rail)
    );
    let proof = [line(facts, &shown.at)];
    Some(Reading::new(Fault::Address, Confidence::Certain, format!("{} has no RoCE v2 GID with an IPv4 address", name(rail)), why).with(proof))
}

/// The ports' MTUs differ.
fn mtu(facts: &Facts<'_>, ends: &[Rail<'_>]) -> Option<Reading> {
    let mut values: BTreeMap<u32, (Rail<'_>, &Line)> = BTreeMap::new();
    let mut by_node: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for rail in ends {
        let Some(mtu) = &rail.port.active_mtu else { continue };
        by_node.entry(rail.node.title()).or_default().insert(mtu.value);
        values.entry(mtu.value).or_insert((*rail, &mtu.at));
    }
    if by_node.len() < 2 || values.len() < 2 || by_node.values().any(|v| v.len() > 1) {
        return None;
    }
    let said: Vec<String> = values.iter().map(|(mtu, (rail, _))| format!("{mtu} on {}", rail.node.title())).collect();
    let why = format!(
        "The ports in use report an active MTU of {}. Small packets pass and large ones are lost where a port or a switch on the way takes less than the sender believes; the sender repeats them until it gives up.",
        said.join(" and ")
    );
    let proof: Vec<Evidence> = values.values().map(|(_, at)| line(facts, at)).collect();
    Some(Reading::new(Fault::Mtu, Confidence::Certain, format!("the ends' MTUs differ: {}", said.join(", ")), why).with(proof))
}

/// The networks of the two ends, by the prefixes that the hosts give them, are different.
fn apart(facts: &Facts<'_>, ends: &[Rail<'_>]) -> Option<Reading> {
    let unrouted = number_of(facts).is_some_and(|n| matches!(n, 101 | 110 | 113));
    let (local, remote) = facts.pairs().find_map(|(_, l, r)| match (l, r) {
        (Gid::Mapped(l), Gid::Mapped(r)) => Some((l, r)),
        _ => None,
    })?;
    let (a, b) = (owner(ends, local)?, owner(ends, remote)?);
    if !unrouted || a.1.value.network() == b.1.value.network() {
        return None;
    }
    let text = |(rail, address): &(Rail<'_>, &crate::digest::Fact<crate::digest::Address>)| format!("{}/{} on {}", address.value.ip, address.value.prefix, name(rail));
    let why = format!(
        "The two ends are in different networks by their own prefixes: {} and {}. The error number says that no route between them was found; put both ports of a rail into one network, or give the networks a gateway that routes RoCE.",
        text(&a),
        text(&b)
    );
    let proof = [line(facts, &a.1.at), line(facts, &b.1.at)];
    Some(Reading::new(Fault::Path, Confidence::Certain, "the ends are in different networks", why).with(proof))
}

/// The port that has this address, with the line that gives its prefix.
fn owner<'a>(ends: &[Rail<'a>], ip: Ipv4Addr) -> Option<(Rail<'a>, &'a crate::digest::Fact<crate::digest::Address>)> {
    ends.iter().find_map(|r| Some((*r, r.interface?.addresses.iter().find(|a| a.value.ip == IpAddr::V4(ip))?)))
}

/// The ends of a failure are in one network by the prefixes that the hosts give them, so that a guess at subnets is
/// refuted.
pub fn one_network(facts: &Facts<'_>) -> bool {
    let ends = ends(facts);
    facts.pairs().any(|(_, l, r)| match (l, r) {
        (Gid::Mapped(l), Gid::Mapped(r)) => owner(&ends, l).zip(owner(&ends, r)).is_some_and(|(a, b)| a.1.value.network() == b.1.value.network()),
        _ => false,
    })
}

/// Every pinned index is right on its node, so that different numbers are no fault.
pub fn pins_are_right(facts: &Facts<'_>) -> bool {
    let ends = ends(facts);
    let hosts: BTreeSet<&str> = facts.pinned.iter().map(crate::rules::query::SettingHit::host).collect();
    let right = ends.iter().filter(|r| pin_of(facts, r).is_some_and(|(_, n)| r.port.gids.iter().any(|g| g.index == n && r.fits(g))));
    right.map(|r| r.node.host).collect::<BTreeSet<_>>().len() >= hosts.len().max(1)
}

/// The facts of both ends show active links, right GIDs and equal MTUs: what is left is the way between them, or a
/// process that is gone.
pub fn all_right(facts: &Facts<'_>) -> Option<Vec<Evidence>> {
    let ends = ends(facts);
    let nodes: BTreeSet<Option<usize>> = ends.iter().filter(|r| r.is_up() == Some(true) && r.gid().is_some()).map(|r| r.node.host).collect();
    let mtus: BTreeSet<u32> = ends.iter().filter_map(|r| r.port.active_mtu.as_ref()).map(|m| m.value).collect();
    if nodes.len() < 2 || nodes.contains(&None) || mtus.len() > 1 || ends.iter().any(|r| r.gid().is_none()) || read(facts).is_some() || facts.any(What::GidQuery) {
        return None;
    }
    let mut seen = BTreeSet::new();
    Some(ends.iter().filter(|r| seen.insert(r.node.host)).filter_map(Rail::gid).map(|g| line(facts, &g.at)).collect())
}

/// An InfiniBand port that the subnet manager has not brought up.
pub fn unmanaged(facts: &Facts<'_>) -> Option<Reading> {
    let ends = ends(facts);
    if let Some(reading) = ends.iter().any(|r| r.port.state.as_ref().is_some_and(|s| s.value == "DOWN")).then(|| down(facts, &ends)).flatten() {
        return Some(reading);
    }
    let waits = |r: &&Rail<'_>| r.port.state.as_ref().is_some_and(|s| s.value == "INIT") || r.port.sm_lid.as_ref().is_some_and(|l| l.value == 0);
    let rail = ends.iter().filter(|r| !r.is_roce()).find(waits)?;
    let proof = rail.port.state.as_ref().filter(|s| s.value == "INIT").map(|s| &s.at).or_else(|| rail.port.sm_lid.as_ref().map(|l| &l.at))?;
    let why = format!(
        "The port of {} has its link but no subnet manager: its state is {}, and nobody gave it a LID or a path. Start opensm on one node, or the manager of the switch.",
        name(rail),
        rail.port.state.as_ref().map_or("not ACTIVE", |s| s.value.as_str())
    );
    Some(Reading::new(Fault::Fabric, Confidence::Certain, format!("no subnet manager serves {}", name(rail)), why).with([line(facts, proof)]))
}
