//! What the logs say of each thing that can be expected.

use crate::expect::Key;
use crate::rules::Evidence;
use crate::rules::network::{choice, interfaces, is_socket};
use crate::rules::query::{Ask, evidence};
use std::collections::BTreeMap;

/// One rank's or the job's word.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The value, as printed.
    pub value: String,
    /// Host that says so; empty for the whole job.
    pub host: String,
    /// Rank that says so.
    pub rank: Option<u32>,
    /// Its line.
    pub evidence: Option<Evidence>,
    /// The value says that there is nothing of the kind.
    pub absence: bool,
}

/// All facts of a kind in the last attempt.
pub fn of(ask: Ask<'_>, key: Key) -> Vec<Fact> {
    match key {
        Key::Nranks => size(ask, ask.job.nranks, |l, n| l.nranks == Some(n)),
        Key::Nnodes => size(ask, ask.job.nnodes, |l, n| l.nnodes == Some(n)),
        Key::Version => versions(ask),
        Key::Net => nets(ask),
        Key::Hca => devices(ask, |name, _| Some(name)),
        Key::Link => devices(ask, |_, layer| layer),
        Key::Gdr => gdr(ask),
        Key::P2p => local(ask),
        Key::NoInterface => used_interfaces(ask),
    }
}

fn size(ask: Ask<'_>, number: Option<u32>, says: impl Fn(&crate::digest::CommLog, u32) -> bool) -> Vec<Fact> {
    let Some(n) = number else { return Vec::new() };
    let logs = ask.comms().flat_map(|c| ask.views(c));
    let proof = logs.filter(|(_, l)| says(l, n)).find_map(|(m, l)| Some(evidence(ask.job, m.rank, l.start.as_ref().or(l.complete.as_ref()).or(l.first.as_ref())?)));
    vec![Fact { value: n.to_string(), host: String::new(), rank: None, evidence: proof, absence: false }]
}

fn versions(ask: Ask<'_>) -> Vec<Fact> {
    let printed = ask.procs().flat_map(|(_, p)| {
        let line = p.log.ledger.of("init.version").next().map(|e| evidence(ask.job, p.rank, &e.first));
        p.log.versions.iter().map(move |(_, v)| Fact { value: v.clone(), host: p.host.clone(), rank: p.rank, evidence: line.clone(), absence: false })
    });
    let printed: Vec<Fact> = printed.collect();
    if !printed.is_empty() {
        return printed;
    }
    ask.job.versions.iter().map(|v| Fact { value: v.clone(), host: String::new(), rank: None, evidence: None, absence: false }).collect()
}

fn nets(ask: Ask<'_>) -> Vec<Fact> {
    let mut out = Vec::new();
    for comm in ask.comms() {
        for (net, members) in choice(ask, comm) {
            out.extend(members.into_iter().map(|(m, sample)| Fact {
                value: net.to_owned(),
                host: ask.job.procs[m.proc].host.clone(),
                rank: m.rank,
                evidence: Some(evidence(ask.job, m.rank, sample)),
                absence: false,
            }));
        }
    }
    out
}

/// Processes whose data goes over TCP have no device in use.
fn without_device(ask: Ask<'_>, word: &str) -> Vec<Fact> {
    nets(ask).into_iter().filter(|f| is_socket(&f.value)).map(|f| Fact { value: format!("{word} (network {})", f.value), absence: true, ..f }).collect()
}

fn devices(ask: Ask<'_>, pick: impl for<'t> Fn(&'t str, Option<&'t str>) -> Option<&'t str>) -> Vec<Fact> {
    let mut out = without_device(ask, "none");
    for hit in ask.hits("ib.using") {
        let list = hit.entry.first.get("list").unwrap_or_default();
        for (name, layer) in device_list(list) {
            if let Some(value) = pick(name, layer) {
                out.push(Fact { value: value.to_owned(), host: hit.host().to_owned(), rank: hit.rank(), evidence: Some(hit.evidence()), absence: false });
            }
        }
    }
    out
}

/// `[0]mlx5_0:1/RoCE [1]={[0] mlx5_1:1/IB, …} [RO]` as names with link layers.
fn device_list(list: &str) -> Vec<(&str, Option<&str>)> {
    let words = list.split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | '=' | '[' | ']' | '+'));
    words
        .filter_map(|word| {
            let (name, rest) = word.split_once(':')?;
            let (port, layer) = rest.split_once('/').map_or((rest, None), |(p, l)| (p, Some(l)));
            (!name.is_empty() && port.bytes().all(|b| b.is_ascii_digit())).then_some((name, layer))
        })
        .collect()
}

fn gdr(ask: Ask<'_>) -> Vec<Fact> {
    let mut seen: BTreeMap<(Option<u32>, bool), Fact> = BTreeMap::new();
    for (m, log) in ask.comms().flat_map(|c| ask.views(c)) {
        let host = &ask.job.procs[m.proc].host;
        for channel in log.channels.iter().filter(|c| !c.net.is_empty()) {
            let on = channel.via.contains("/GDRDMA");
            seen.entry((m.rank, on)).or_insert_with(|| Fact {
                value: if on { "on" } else { "off" }.to_owned(),
                host: host.clone(),
                rank: m.rank,
                evidence: Some(evidence(ask.job, m.rank, &channel.first)),
                absence: false,
            });
        }
    }
    seen.into_values().collect()
}

fn local(ask: Ask<'_>) -> Vec<Fact> {
    let mut seen: BTreeMap<(Option<u32>, String), Fact> = BTreeMap::new();
    for (m, log) in ask.comms().flat_map(|c| ask.views(c)) {
        for channel in log.channels.iter().filter(|c| c.net.is_empty() && c.from != c.to && !c.via.starts_with("COLLNET")) {
            seen.entry((m.rank, channel.via.clone())).or_insert_with(|| Fact {
                value: channel.via.clone(),
                host: ask.job.procs[m.proc].host.clone(),
                rank: m.rank,
                evidence: Some(evidence(ask.job, m.rank, &channel.first)),
                absence: false,
            });
        }
    }
    seen.into_values().collect()
}

/// Interfaces of the bootstrap, of the RDMA handshake and, where data goes over TCP, of the data.
fn used_interfaces(ask: Ask<'_>) -> Vec<Fact> {
    let mut out = Vec::new();
    for hit in ask.any_of(&["bootstrap.using", "ib.using"]) {
        if let Some(name) = hit.get("iface") {
            out.push(Fact { value: name.to_owned(), host: hit.host().to_owned(), rank: hit.rank(), evidence: Some(hit.evidence()), absence: false });
        }
    }
    for hit in ask.hits("socket.using").into_iter().filter(|h| h.process().log.ledger.of("net.using").last().is_none_or(|e| e.first.get("net").is_some_and(is_socket))) {
        for interface in interfaces(hit.entry.first.get("list").unwrap_or_default()) {
            out.push(Fact { value: interface.name.to_owned(), host: hit.host().to_owned(), rank: hit.rank(), evidence: Some(hit.evidence()), absence: false });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::device_list;

    #[test]
    fn lists_of_devices() {
        assert_eq!(device_list("[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]"), [("mlx5_0", Some("RoCE")), ("mlx5_1", Some("IB"))]);
        assert_eq!(device_list("[0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [RO]"), [("mlx5_2", Some("RoCE")), ("mlx5_3", Some("RoCE"))]);
        assert_eq!(device_list("[RO]"), []);
    }
}
