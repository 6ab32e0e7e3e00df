//! Why NET/Socket was taken.

use crate::job::NodeFacts;
use crate::rules::facts;
use crate::rules::finding::Evidence;
use crate::rules::network::{self, Link, names_text};
use crate::rules::query::{Ask, Hit, SettingHit};
use std::collections::BTreeSet;

/// What kept the ranks from RDMA.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// NCCL_NET=Socket: on purpose.
    Asked(&'a str),
    /// NET/IB lists these devices and Socket was taken all the same.
    Chosen(Vec<&'a str>),
    /// NCCL_IB_DISABLE=1
    Disabled,
    /// This device cannot be opened.
    OpenFailed(&'a str),
    /// libibverbs is not in the image.
    NoVerbs,
    /// The filter of NCCL_IB_HCA lets no device pass.
    Filter(&'a str),
    /// A network plugin failed; the text says how.
    Plugin(String),
    /// The hosts' facts say that the ports are down: which.
    PortsDown(String),
    /// No device found and no filter.
    NoDevice,
    /// The log does not say.
    Unknown,
}

/// The reason with its lines.
#[derive(Debug)]
pub struct Reason<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// Lines that prove it.
    pub evidence: Vec<Evidence>,
}

impl<'a> Reason<'a> {
    /// Looks among the processes on NET/Socket. Where all ranks are on it, other processes' lines count too: many
    /// jobs print the network's details on one rank only.
    pub fn find(ask: Ask<'a>, procs: &BTreeSet<usize>, mixed: bool) -> Self {
        let own = |p: usize| procs.contains(&p) || !mixed;
        let setting = |name: &str, test: &dyn Fn(&str) -> bool| ask.settings(name).into_iter().find(|s| own(s.proc) && test(s.value));
        let hits = |kind: &str| ask.hits(kind).into_iter().filter(|h| own(h.proc)).collect::<Vec<_>>();
        let by_setting = |kind: Kind<'a>, s: &SettingHit<'_>| Self { kind, evidence: vec![s.evidence()] };
        if let Some(s) = setting("NCCL_NET", &network::is_socket) {
            return by_setting(Kind::Asked(s.value), &s);
        }
        if let Some(s) = setting("NCCL_IB_DISABLE", &|v| v.parse::<i64>().is_ok_and(|n| n != 0)) {
            return by_setting(Kind::Disabled, &s);
        }
        let no_device = hits("ib.no_device");
        if let Some(h) = hits("ib.open_failed").into_iter().find(|h| h.get("hca").is_some()) {
            return Self { kind: Kind::OpenFailed(h.get("hca").unwrap_or_default()), evidence: vec![h.evidence()] };
        }
        if let Some(h) = hits("ib.no_libibverbs").first() {
            return Self { kind: Kind::NoVerbs, evidence: vec![h.evidence()] };
        }
        let devices: Vec<&'a str> = hits("ib.using").iter().flat_map(|h| h.entry.first.get("list").map(network::devices).unwrap_or_default()).collect();
        if let Some(s) = setting("NCCL_IB_HCA", &|v| !v.is_empty())
            && devices.is_empty()
        {
            let mut evidence = vec![s.evidence()];
            evidence.extend(no_device.first().map(Hit::evidence));
            return Self { kind: Kind::Filter(s.value), evidence };
        }
        if let Some(reason) = ports_down(ask, procs) {
            return reason;
        }
        if let Some((text, e)) = failed_plugin(ask, &own) {
            return Self { kind: Kind::Plugin(text), evidence: vec![e] };
        }
        if let Some(h) = no_device.first() {
            return Self { kind: Kind::NoDevice, evidence: vec![h.evidence()] };
        }
        if !devices.is_empty() && !mixed {
            let lines = hits("ib.using").iter().map(Hit::evidence).take(1).collect();
            return Self { kind: Kind::Chosen(devices), evidence: lines };
        }
        match hits("net.plugin_init_failed").first() {
            Some(h) => Self { kind: Kind::NoDevice, evidence: vec![h.evidence()] },
            None => Self { kind: Kind::Unknown, evidence: Vec::new() },
        }
    }

    /// A few words for the title.
    pub fn short(&self) -> String {
        match &self.kind {
            Kind::Asked(net) => format!("NCCL_NET={net} asks for it"),
            Kind::Chosen(devices) => format!("{} is left unused", names_text(devices)),
            Kind::Disabled => "NCCL_IB_DISABLE=1".to_owned(),
            Kind::OpenFailed(hca) => format!("{hca} cannot be opened"),
            Kind::NoVerbs => "libibverbs is missing".to_owned(),
            Kind::Filter(value) => format!("NCCL_IB_HCA={} matches no HCA", cut(value)),
            Kind::Plugin(_) => "the network plugin failed".to_owned(),
            Kind::PortsDown(ports) => format!("{ports} is down"),
            Kind::NoDevice => "NCCL finds no RDMA device".to_owned(),
            Kind::Unknown => "why is not in the log".to_owned(),
        }
    }

    /// A sentence for the explanation.
    pub fn sentence(&self, ask: Ask<'_>) -> String {
        match &self.kind {
            Kind::Asked(net) => format!("NCCL_NET={net} asks for TCP, so this is on purpose."),
            Kind::Chosen(devices) => format!(
                "NET/IB lists {} and TCP was taken all the same, so somebody chose it (NCCL_NET=Socket, which most versions do not print); a working HCA is left unused.",
                names_text(devices)
            ),
            Kind::Disabled => "IB and RoCE are switched off by NCCL_IB_DISABLE=1.".to_owned(),
            Kind::OpenFailed(hca) => format!("The HCA {hca} is there but cannot be opened: permission on /dev/infiniband, a container without that directory, or a dead device."),
            Kind::NoVerbs => "libibverbs (package rdma-core or libibverbs1) is not in the image, so NCCL cannot use any HCA.".to_owned(),
            Kind::Filter(value) => filter_text(ask, value),
            Kind::Plugin(text) => format!("The network plugin could not be used: {text}."),
            Kind::PortsDown(ports) => format!("NET/IB takes only active ports, and by the host's facts {ports} is down: cable, transceiver, switch port, or an interface that was taken down."),
            Kind::NoDevice if facts::rails(ask).iter().any(|r| r.is_up() == Some(true)) => {
                "NET/IB finds no device although the hosts have an active one, so the processes cannot see it: no /dev/infiniband in the container, no right to open it, or a library that does not know the device.".to_owned()
            }
            Kind::NoDevice => "NET/IB finds no device: no HCA, no /dev/infiniband in the container, or no port that is up.".to_owned(),
            Kind::Unknown => {
                "The lines that say why IB was not taken are not in the log (NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET on every rank shows them).".to_owned()
            }
        }
    }
}

fn cut(value: &str) -> String {
    let mut text: String = value.chars().take(30).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}

fn filter_text(ask: Ask<'_>, value: &str) -> String {
    let names = network::wanted(value);
    let pair = |n: &&&str| facts::nodes(ask).find_map(|node| Some((node, node.rail_of(n)?)));
    if let Some((name, (node, rail))) = names.iter().find_map(|n| Some((n, pair(&n)?))) {
        return format!(
            "NCCL_IB_HCA={} names a network interface. By the facts of {}, the RDMA device behind {name} is {}; that is the name that belongs there.",
            cut(value),
            node.title(),
            rail.hca
        );
    }
    if let Some(name) = names.iter().find(|n| network::is_interface(n)) {
        return format!(
            "NCCL_IB_HCA={} names a network interface. The filter wants the RDMA device behind it (mlx5_…, rocep…): {name} and its HCA are two names of one link and are not interchangeable; `rdma link show` gives the pair.",
            cut(value)
        );
    }
    if let Some(seen) = network::seen_devices(ask).iter().find(|d| names.iter().any(|n| n.eq_ignore_ascii_case(d) && n != *d)) {
        return format!("NCCL_IB_HCA={} differs from the device {seen} in the case of its letters; names are case-sensitive.", cut(value));
    }
    format!("NCCL_IB_HCA={} lets no device pass: no HCA of that name is visible here, or its port is down.", cut(value))
}

/// All RDMA ports of a host that went over TCP are down by its facts.
fn ports_down<'a>(ask: Ask<'a>, procs: &BTreeSet<usize>) -> Option<Reason<'a>> {
    let mut nodes: Vec<&NodeFacts> = procs.iter().filter_map(|p| facts::of_proc(ask, *p)).collect();
    nodes.dedup_by_key(|n| n.host);
    nodes.into_iter().find_map(|node| {
        let rails = node.rails();
        let first = rails.first()?;
        if rails.iter().any(|r| r.is_up() != Some(false)) {
            return None;
        }
        let evidence = rails.iter().filter_map(|r| r.port.state.as_ref()).take(2).map(|s| facts::evidence(ask, &s.at)).collect();
        let which = if rails.len() == 1 { format!("{} on {}", first.hca, node.title()) } else { format!("every RDMA port of {}", node.title()) };
        Some(Reason { kind: Kind::PortsDown(which), evidence })
    })
}

/// A plugin that somebody wanted and that failed.
fn failed_plugin(ask: Ask<'_>, own: &dyn Fn(usize) -> bool) -> Option<(String, Evidence)> {
    let hit = ask
        .any_of(&["plugin.ofi_error", "plugin.ofi_none", "plugin.load_failed", "plugin.unsupported"])
        .into_iter()
        .find(|h| own(h.proc) && (h.entry.kind != "plugin.load_failed" || !h.get("error").unwrap_or_default().contains("No such file")))?;
    let text = hit.get("error").or(hit.get("name")).map_or_else(|| hit.text().chars().take(120).collect(), str::to_owned);
    Some((text, hit.evidence()))
}

/// The first sign that RDMA was asked for or is there: (words, line).
pub fn rdma_sign(ask: Ask<'_>, procs: &BTreeSet<usize>) -> Option<(String, Evidence)> {
    if let Some(s) = ask.setting_where("NCCL_IB_HCA", |v| !network::wanted(v).is_empty()) {
        return Some((format!("NCCL_IB_HCA={} names HCAs", cut(s.value)), s.evidence()));
    }
    if let Some(s) = ask.setting_where("NCCL_NET", |v| v.starts_with("IB")) {
        return Some((format!("NCCL_NET={} asks for it", s.value), s.evidence()));
    }
    if let Some((node, rail)) = facts::nodes(ask).find_map(|n| Some((n, n.rails().into_iter().max_by_key(|r| (r.is_up(), r.speed()))?))) {
        let line = rail.port.state.as_ref().map(|s| &s.at).or_else(|| rail.port.netdev.as_ref().map(|n| &n.at));
        let state = rail.port.state.as_ref().map_or(String::new(), |s| format!(", {}", s.value));
        let on = rail.netdev().map_or(String::new(), |n| format!(" on {n}"));
        let at = line.or_else(|| node.facts.hca(rail.hca).map(|h| &h.at));
        return Some((format!("the facts of {} show {}{on}{state}", node.title(), rail.hca), facts::evidence(ask, at?)));
    }
    let listed = ask.hits("ib.using").into_iter().find(|h| !network::devices(h.get("list").unwrap_or_default()).is_empty());
    if let Some(h) = listed.or_else(|| ask.any_of(&["ib.device", "ib.open_failed", "host.ibv_device", "host.show_gids_row"]).into_iter().find(|h| h.get("hca").is_some())) {
        return Some((format!("the log names {}", names_text(&network::seen_devices(ask))), h.evidence()));
    }
    if let Some(h) = network::hits_of(ask, "ib.no_libibverbs", procs).first() {
        return Some(("NCCL looked for libibverbs and the image lacks it".to_owned(), h.evidence()));
    }
    // From 2.28 on the built-in IB says so wherever it found no device, and a machine without any is no sign of RDMA.
    let without_device = |h: &&Hit<'_>| h.get("plugin") == Some("IB") && !network::hits_of(ask, "ib.no_device", &BTreeSet::from([h.proc])).is_empty();
    if let Some(h) = network::hits_of(ask, "net.plugin_init_failed", procs).iter().filter(|h| !without_device(h)).find(|h| h.get("plugin").is_some_and(|p| p.starts_with("IB"))) {
        return Some(("NCCL tried NET/IB and could not use it".to_owned(), h.evidence()));
    }
    if let Some(h) = ask.any_of(&["plugin.hpcx", "plugin.ofi", "plugin.ofi_error", "plugin.ofi_none"]).first() {
        return Some(("a network plugin for RDMA is installed".to_owned(), h.evidence()));
    }
    for h in ask.any_of(&["socket.using", "bootstrap.using"]) {
        let mut names = h.entry.first.get("list").map(network::interfaces).unwrap_or_default().into_iter().map(|i| i.name).chain(h.entry.first.get("iface"));
        if let Some(name) = names.find(|n| Link::of(n) == Link::Ipoib) {
            return Some((format!("{name} is an InfiniBand interface"), h.evidence()));
        }
    }
    None
}
