//! ib-device-missing: IB is wanted and no RDMA device can be used.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::network::{self, names_text};
use super::query::{Ask, Hit, SettingHit, hosts_of, ranks_of};
use super::remedy::sh;
use super::{Cause, Rule};
use crate::digest::SampleLevel;
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "ib-device-missing", aliases: &[], summary: "IB is wanted and no RDMA device can be used.", explanation: include_str!("ib_device_missing.md") },
    check,
    explains: &["tcp-fallback", "env-mismatch", "net-plugin-failure", "peer-crash", "bootstrap-unreachable", "missing-rank", "collective-timeout", "stall", "gdr-disabled"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    wanted(ask).or_else(|| one_node(ask)).into_iter().collect()
}

/// IB was asked for, nothing else may be taken, and it cannot be used.
fn wanted(ask: Ask<'_>) -> Option<Finding> {
    let named = ask.hits("net.not_found").into_iter().filter(|h| h.get("net").is_some_and(|n| n.starts_with("IB")));
    let refusals: Vec<Hit<'_>> = named.chain(ask.hits("net.none")).collect();
    let first = *refusals.first()?;
    let procs: BTreeSet<usize> = refusals.iter().map(|h| h.proc).collect();
    let near = |kind: &str| {
        let own = network::hits_of(ask, kind, &procs);
        if own.is_empty() { ask.hits(kind) } else { own }
    };
    let (verbs, failed, none) = (near("ib.no_libibverbs"), near("ib.open_failed"), near("ib.no_device"));
    let reason = verbs.first().or(failed.first()).or(none.first()).copied();
    // Without any line on IB the wanted network is some other one.
    if reason.is_none() && first.entry.kind != "net.not_found" {
        return None;
    }
    let net = net_name(ask, &first)?;
    let filter = ask.settings("NCCL_IB_HCA").into_iter().next();
    let plugin = ask.hits("plugin.loaded").into_iter().find(|h| !h.text().contains("TUNER/") && !h.text().contains("PROFILER/"));
    let (what, sentence) = reason_text(reason, filter.as_ref(), plugin.as_ref());
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, format!("{net} is wanted and cannot be used: {what}"));
    f.why = format!("NCCL_NET or the plugin in use allows no other network, so the initialisation fails instead of falling back to TCP. {sentence}");
    f.ranks = ranks_of(&refusals);
    f.hosts = hosts_of(&refusals);
    f.evidence = reason.iter().chain([&first]).map(Hit::evidence).collect();
    f.evidence.extend(filter.map(|s| s.evidence()));
    finish(ask, &mut f, reason);
    Some(f)
}

/// The network that was wanted, as far as the log tells; none where it is one that needs no RDMA device. The built-in
/// IB looks for devices whatever is wanted, so its line alone does not say that it was.
fn net_name<'a>(ask: Ask<'a>, refusal: &Hit<'a>) -> Option<&'a str> {
    let own = |name: &str| name.starts_with("IB") || name.eq_ignore_ascii_case("gIB");
    let named = refusal.get("net").or_else(|| ask.settings("NCCL_NET").first().map(|s| s.value));
    if let Some(name) = named {
        return own(name).then_some(name);
    }
    let vendor = ask.hits("plugin.vendor").iter().any(|h| h.entry.first.level == Some(SampleLevel::Warn) && h.get("name").is_some_and(|n| !own(n)));
    (!vendor).then_some("IB")
}

fn reason_text(reason: Option<Hit<'_>>, filter: Option<&SettingHit<'_>>, plugin: Option<&Hit<'_>>) -> (String, String) {
    let whose = plugin.and_then(|h| h.get("name")).map_or_else(String::new, |n| format!(" (plugin {n})"));
    match reason.map(|h| (h.entry.kind.as_str(), h)) {
        Some(("ib.no_libibverbs", _)) => (format!("libibverbs is missing{whose}"), "libibverbs (package rdma-core or libibverbs1) cannot be opened in this image.".to_owned()),
        Some(("ib.open_failed", h)) => {
            let hca = h.get("hca").unwrap_or("an HCA");
            (format!("{hca} cannot be opened"), format!("{hca} is listed but cannot be opened: permission, a container without /dev/infiniband, or a dead device."))
        }
        _ => match filter {
            Some(s) => (
                format!("NCCL_IB_HCA={} matches no HCA", s.value),
                format!("NCCL_IB_HCA={} lets no device pass. It wants names of RDMA devices as `ibv_devices` lists them.", s.value),
            ),
            None => ("no RDMA device is found".to_owned(), "No HCA is visible: none in the node or the container, or no port that is up.".to_owned()),
        },
    }
}

/// A node cannot open its device while others can: it falls back alone, and the job does not run.
fn one_node(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("ib.open_failed").into_iter().filter(|h| h.get("hca").is_some()).collect();
    let first = hits.first()?;
    let failed: BTreeSet<usize> = hits.iter().map(|h| h.proc).collect();
    let mixed = ask.spanning().into_iter().any(|c| {
        let choice = network::choice(ask, c);
        choice.get("Socket").is_some_and(|m| m.iter().any(|(m, _)| failed.contains(&m.proc))) && choice.keys().any(|n| !network::is_socket(n))
    });
    if !mixed {
        return None;
    }
    let hca = first.get("hca").unwrap_or("its HCA");
    let hosts = hosts_of(&hits);
    let place = names_text(&hosts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, format!("{place} cannot open {hca} and falls back to TCP alone"));
    f.why = format!(
        "The other nodes use RDMA. {place} has {hca} but may not or cannot open it, takes TCP, and the two kinds of connection do not fit together. Permission on /dev/infiniband, the container's device rules, or the device itself is at fault."
    );
    f.ranks = ranks_of(&hits);
    f.hosts = hosts;
    f.evidence = hits.iter().take(3).map(Hit::evidence).collect();
    f.evidence.extend(ask.hits("socket.wrong_type").first().map(Hit::evidence));
    finish(ask, &mut f, Some(*first));
    Some(f)
}

fn finish(ask: Ask<'_>, f: &mut Finding, reason: Option<Hit<'_>>) {
    let verbs = reason.is_some_and(|h| h.entry.kind == "ib.no_libibverbs");
    let mut fixes = Vec::new();
    if verbs {
        fixes.push(Fix {
            title: "Install the verbs library in the image".to_owned(),
            when: "libibverbs is missing.".to_owned(),
            commands: vec![
                "apt-get install -y libibverbs1 ibverbs-providers rdma-core   # or: dnf install libibverbs rdma-core".to_owned(),
                "ldconfig -p | grep libibverbs".to_owned(),
            ],
            needs: "root".to_owned(),
            ..Fix::default()
        });
    }
    fixes.push(Fix {
        title: "Let the job see and open the HCA".to_owned(),
        when: "The host has an HCA and the container or the user may not use it.".to_owned(),
        commands: vec![
            "ls -l /dev/infiniband; ls /sys/class/infiniband; ibv_devices".to_owned(),
            "docker run --network=host --device=/dev/infiniband --ulimit memlock=-1 …".to_owned(),
        ],
        needs: "root".to_owned(),
        ..Fix::default()
    });
    fixes.push(Fix {
        title: "Name an HCA that exists".to_owned(),
        when: "NCCL_IB_HCA matches nothing, or its port is down.".to_owned(),
        commands: vec![
            "rdma link show   # HCA, state and interface".to_owned(),
            format!("export NCCL_IB_HCA={}", network::seen_devices(ask).first().map_or("<HCA with state ACTIVE>".into(), |h| sh(h))),
        ],
        needs: "nothing".to_owned(),
        undo: "unset NCCL_IB_HCA".to_owned(),
        ..Fix::default()
    });
    f.fixes = fixes;
    f.avoid = vec!["NCCL_NET=Socket or NCCL_IB_DISABLE=1: the job starts, and all data between nodes goes over TCP.".to_owned()];
    f.verify = vec!["`NET/IB : Using [0]…` lists the HCA on every node.".to_owned(), "ibv_devinfo says state: PORT_ACTIVE inside the container.".to_owned()];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn find(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == "ib-device-missing")
    }

    #[test]
    fn ib_is_forced_and_absent() {
        let f = find("alpha:1:1 [0] NCCL INFO NET/IB : No device found.\nalpha:1:1 [0] plugin/net.cc:278 NCCL WARN Failed to initialize any NET plugin\n").unwrap();
        assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Certain));
        assert!(find("alpha:1:1 [0] NCCL INFO NET/IB : No device found.\nalpha:1:1 [0] net.cc:579 NCCL WARN Error: network IB not found.\n").is_some());
    }

    #[test]
    fn another_network_is_no_ib() {
        assert!(find("alpha:1:1 [0] plugin/net.cc:278 NCCL WARN Failed to initialize any NET plugin\n").is_none());
        assert!(find("alpha:1:1 [0] net.cc:579 NCCL WARN Error: network AWS Libfabric not found.\n").is_none());
    }

    #[test]
    fn a_plugin_that_needs_no_rdma_device_failed_by_itself() {
        let none = "alpha:1:1 [0] NCCL INFO NET/IB : No device found.\nalpha:1:1 [0] plugin/net.cc:278 NCCL WARN Failed to initialize any NET plugin\n";
        let named = |net: &str| format!("alpha:1:1 [0] NCCL INFO NCCL_NET set by environment to {net}\n{none}");
        assert!(find(&named("FasTrak")).is_none());
        let warned = "alpha:1:1 [0] NCCL WARN NET/FasTrak failed to reach the receive daemon\n";
        assert!(find(&format!("{warned}{none}")).is_none());
        let own = named("gIB").replace("NET/IB", "NET/gIB");
        assert_eq!(find(&own).unwrap().title, "gIB is wanted and cannot be used: no RDMA device is found");
    }

    #[test]
    fn a_single_node_needs_no_device() {
        assert!(find("alpha:1:1 [0] NCCL INFO NET/IB : No device found.\nalpha:1:1 [0] NCCL INFO Using network Socket\n").is_none());
        assert!(find("alpha:1:1 [0] transport/net_ib.cc:426 NCCL WARN NET/IB : Unable to open device mlx5_0\nalpha:1:1 [0] NCCL INFO Using network Socket\n").is_none());
    }
}
