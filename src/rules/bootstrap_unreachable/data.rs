//! Data over TCP that does not find its peer: the ranks met over one interface, and a data connection goes to an
//! address of another. NET/Socket uses every interface that the filter lets pass.

use super::{Answer, advice, complaint, short, start};
use crate::rules::finding::{Confidence, Finding, Fix, Severity};
use crate::rules::network::{self, names_text};
use crate::rules::query::{Ask, Hit};
use crate::rules::remedy::sh;
use std::collections::BTreeSet;

/// Looks for a data connection that failed although the bootstrap had come through.
pub fn check(ask: Ask<'_>) -> Option<Finding> {
    // RDMA shakes hands over the interface of the bootstrap; nothing new is tried there.
    if super::super::verdict::works(ask) || !(ask.job.nets.is_empty() || ask.job.nets.iter().any(|n| network::is_socket(n))) {
        return None;
    }
    let hits = ask.any_of(&["socket.connect_failed", "socket.retries_exceeded", "socket.connect_retry"]);
    let failed: Vec<(Hit<'_>, Answer, &str)> = hits.iter().filter(|h| connecting(ask, h)).filter_map(|h| Some((*h, Answer::of(h)?, target(ask, h)?))).collect();
    let over = |h: &Hit<'_>| h.entry.kind != "socket.connect_retry";
    let (hit, answer, address) = *failed.iter().find(|(h, ..)| over(h)).or_else(|| failed.first())?;
    let name = interface(ask, address);
    let bad = name.and_then(|n| complaint(n, address)).or_else(|| network::is_link_local(address).then_some("a link-local address"));
    let confidence = match (bad.is_some(), over(&hit) && answer.is_path()) {
        (true, true) => Confidence::Certain,
        (true, false) | (false, true) => Confidence::Likely,
        (false, false) => Confidence::Possible,
    };
    let met = meeting(ask);
    let who = hit.rank().map_or_else(|| if hit.host().is_empty() { "A rank".to_owned() } else { hit.host().to_owned() }, |r| format!("Rank {r}"));
    let end = name.map_or_else(|| address.to_owned(), |n| format!("{address} ({n})"));
    let title: String = format!("{who} opens no data connection to {end}: {}", short(answer)).chars().take(100).collect();
    let mut why = answer.meaning().to_owned();
    why.push_str(&if met.is_empty() {
        " The ranks had met before, so another address of the same peer does answer.".to_owned()
    } else {
        format!(" The ranks had met over {}, so that interface leads to the peer.", names_text(&met.iter().copied().collect::<Vec<_>>()))
    });
    why.push_str(" NET/Socket sends data over every interface that NCCL_SOCKET_IFNAME lets pass, and this address belongs to another one");
    why.push_str(&bad.map_or_else(
        || ". A peer that died meanwhile gives the same answer; its log tells.".to_owned(),
        |b| format!(": it is {b}, which differs on every node or stays inside it."),
    ));
    let proof: Vec<Hit<'_>> = failed.iter().map(|(h, ..)| *h).collect();
    let mut f = start(confidence, Severity::Error, title, why, &proof);
    f.evidence.extend(ask.hits("socket.using").first().map(Hit::evidence));
    f.evidence.extend(ask.hits("bootstrap.using").first().map(Hit::evidence));
    f.evidence.truncate(5);
    f.fixes = std::iter::once(only(&met, name)).chain(advice::fixes(ask, Some(address)).pop()).collect();
    f.avoid = advice::avoid();
    f.verify = vec!["`NET/Socket : Using` lists only interfaces of the network that all nodes share, and every rank reaches `Init COMPLETE`.".to_owned()];
    Some(f)
}

/// The process had met its peers and none of its communicators stands.
fn connecting(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    let last = hit.entry.last.num("retry").or(hit.num("retry"));
    let lasting = hit.entry.kind != "socket.connect_retry" || last.is_some_and(|n| n >= 10);
    let comms = &hit.process().log.comms;
    lasting && network::bootstrapped(ask, hit.proc) && comms.iter().all(|c| !c.stood())
}

/// The address that did not answer, if no rank advertises it for the bootstrap.
fn target<'a>(ask: Ask<'a>, hit: &Hit<'a>) -> Option<&'a str> {
    let address = hit.entry.first.get("addr").map(network::host_part).filter(|a| !a.is_empty())?;
    ask.hits("bootstrap.using").iter().all(|h| h.get("ip") != Some(address)).then_some(address)
}

/// The interface of an address: listed by some rank, or named by the address itself.
fn interface<'a>(ask: Ask<'a>, address: &'a str) -> Option<&'a str> {
    let scope = address.split_once('%').map(|(_, s)| s).filter(|s| s.parse::<u32>().is_err());
    let listed = ask.hits("socket.using").into_iter().filter_map(|h| h.entry.first.get("list")).flat_map(network::interfaces).find(|i| i.address == address);
    listed.map(|i| i.name).or(scope)
}

/// The interfaces over which the ranks met.
fn meeting(ask: Ask<'_>) -> BTreeSet<&str> {
    ask.hits("bootstrap.using").into_iter().filter_map(|h| h.entry.first.get("iface")).collect()
}

fn only(met: &BTreeSet<&str>, bad: Option<&str>) -> Fix {
    let good = if met.is_empty() { "<interface that all nodes share>".to_owned() } else { sh(&met.iter().copied().collect::<Vec<_>>().join(",")).into_owned() };
    let mut commands = vec![format!("export NCCL_SOCKET_IFNAME=={good}   # on every node; the second `=` makes the names exact")];
    commands.extend(bad.map(|b| format!("export NCCL_SOCKET_IFNAME=^lo,docker,{}   # or leave only these out", sh(b))));
    Fix {
        title: "Let data go only over the interface that the ranks met on".to_owned(),
        when: "The nodes have no RDMA, or are to go without.".to_owned(),
        commands,
        needs: "nothing".to_owned(),
        cost: "None; the other interface did not carry anything.".to_owned(),
        undo: "unset NCCL_SOCKET_IFNAME".to_owned(),
    }
}
