//! env-mismatch: A setting that must agree differs across ranks.

mod compare;
#[cfg(test)]
mod tests;

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::network;
use super::query::{Ask, Hit, evidence, hosts_of, ranks_of};
use super::{Cause, Rule};
use compare::{Difference, Matter};
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "env-mismatch", aliases: &[], summary: "A setting that must agree differs across ranks.", explanation: include_str!("../env_mismatch.md") },
    check,
    explains: &[
        "app-crash",
        "tcp-fallback",
        "bootstrap-unreachable",
        "ib-completion-error",
        "p2p-iommu-acs-hang",
        "rccl-sdma-rdna",
        "collective-mismatch",
        "peer-crash",
        "slow-intra-node",
        "collective-timeout",
        "stall",
        "gdr-disabled",
    ],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let differences = compare::differences(ask);
    let found = with_messenger(ask, &differences).or_else(|| messenger_alone(ask)).or_else(|| with_trouble(ask, &differences)).or_else(|| plugins(ask)).or_else(|| networks(ask));
    found.into_iter().collect()
}

/// The lines by which a difference of this kind shows.
fn messengers(ask: Ask<'_>, matter: Matter) -> Vec<Hit<'_>> {
    match matter {
        Matter::Local => ask.any_of(&["shm.bad_size", "transport.none"]),
        Matter::Network => ask.hits("socket.wrong_type"),
        Matter::Channels => {
            let mut hits = ask.hits("bootstrap.truncated");
            hits.retain(|h| h.num("got").zip(h.num("want")).is_some_and(|(g, w)| g > 0 && w > 0 && g % 256 == 0 && w % 256 == 0));
            // Before the ranks have met, an empty address comes from the bootstrap itself (version-mismatch).
            hits.extend(ask.hits("bootstrap.family").into_iter().filter(|h| h.num("family") == Some(0) && network::bootstrapped(ask, h.proc)));
            hits
        }
        Matter::Sizes => ask.any_of(&["net.socket_truncated", "net.message_truncated"]),
        Matter::Memory => ask.under("gpu.oom"),
    }
}

/// Ranks of one communicator on different networks.
fn mixed(ask: Ask<'_>) -> bool {
    ask.spanning().iter().any(|c| {
        let choice = network::choice(ask, c);
        choice.len() > 1 && choice.keys().any(|n| network::is_socket(n))
    })
}

/// A difference together with the line that it leads to.
fn with_messenger(ask: Ask<'_>, differences: &[Difference<'_>]) -> Option<Finding> {
    differences.iter().find_map(|d| {
        let lines = messengers(ask, d.matter);
        if lines.is_empty() && !(d.matter == Matter::Network && mixed(ask)) {
            return None;
        }
        let why = format!("{} {}", d.matter.rule(), d.matter.consequence());
        Some(of_difference(ask, d, Confidence::Certain, why, &lines))
    })
}

/// A difference in a job that did not end well, without the line that would prove the connection.
fn with_trouble(ask: Ask<'_>, differences: &[Difference<'_>]) -> Option<Finding> {
    let ended_badly = ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| l.end.as_ref().is_some_and(|(aborted, _)| *aborted));
    let incomplete = ask.job.world().is_some_and(|w| ask.views(w).any(|(_, l)| l.start.is_some() && l.complete.is_none()));
    // A process that already has another reason does not need this one.
    let other = ["gpu.", "app.", "kernel.", "ib.modify", "ib.async", "ib.reg", "ib.create"];
    let explained = ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| other.iter().any(|o| e.kind.starts_with(o))));
    if !(ended_badly || incomplete) || explained {
        return None;
    }
    let d = differences.first()?;
    let late = d.matter == Matter::Sizes && ended_badly;
    let confidence = if late { Confidence::Likely } else { Confidence::Possible };
    let why = format!("{} The job did not end well, and no other reason is in the log. Setting it alike on all ranks shows whether it is this.", d.matter.rule());
    let mut f = of_difference(ask, d, confidence, why, &[]);
    // Logs that were cut lack lines; that a variable is missing there proves nothing.
    if !ended_badly && d.values.iter().any(|(v, _)| v.is_none()) {
        f.severity = Severity::Info;
    }
    Some(f)
}

fn of_difference(ask: Ask<'_>, d: &Difference<'_>, confidence: Confidence, why: String, lines: &[Hit<'_>]) -> Finding {
    let mut f = Finding::new(RULE.cause.id, Severity::Error, confidence, d.title(ask));
    f.why = why;
    f.ranks = d.odd.iter().filter_map(|p| ask.job.procs[*p].rank).collect();
    f.hosts = network::hosts_of(ask, &d.odd);
    f.evidence = d.evidence.iter().take(3).cloned().collect();
    f.evidence.extend(lines.iter().take(3).map(Hit::evidence));
    finish(&mut f, Some(d.name));
    f
}

/// The line alone: the setting itself is not in the log.
fn messenger_alone(ask: Ask<'_>) -> Option<Finding> {
    let net = messengers(ask, Matter::Network);
    if !net.is_empty() && !mixed(ask) {
        let names = |n: Option<i64>| match n {
            Some(3) => "NET/Socket",
            Some(4) => "NET/IB",
            _ => "another network",
        };
        let (peer, own) = (names(net[0].num("got")), names(net[0].num("want")));
        let title = format!("This end uses {own}, its peer {peer}");
        let why = format!(
            "{} was reached by a connection of {peer}, and the two cannot talk to each other. Either a variable (NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_HCA) did not reach all nodes, or one node has no usable HCA; the lines before `Using network` on the other node say which.",
            if own == "NET/Socket" { "NET/Socket here" } else { "This rank" }
        );
        return Some(of_lines(Confidence::Likely, title, why, &net, "NCCL_NET"));
    }
    let channels = messengers(ask, Matter::Channels);
    if !channels.is_empty() {
        let why = format!("{} Sizes that are multiples of 256 bytes are lists of connections of different lengths. The setting itself is not in the log.", Matter::Channels.rule());
        return Some(of_lines(Confidence::Likely, "Ranks disagree on the number of channels".to_owned(), why, &channels, "NCCL_MIN_NCHANNELS"));
    }
    let mut local = messengers(ask, Matter::Local);
    local.retain(|h| h.entry.kind == "shm.bad_size");
    if !local.is_empty() {
        let why = format!("{} A segment without a name or with an absurd size was never offered by the peer: it set up P2P while this rank set up SHM.", Matter::Local.rule());
        return Some(of_lines(Confidence::Likely, "Two local ranks chose different transports (P2P and SHM)".to_owned(), why, &local, "NCCL_P2P_DISABLE"));
    }
    None
}

fn of_lines(confidence: Confidence, title: String, why: String, lines: &[Hit<'_>], name: &str) -> Finding {
    let mut f = Finding::new(RULE.cause.id, Severity::Error, confidence, title);
    f.why = why;
    f.ranks = ranks_of(lines);
    f.hosts = hosts_of(lines);
    f.evidence = lines.iter().take(4).map(Hit::evidence).collect();
    finish(&mut f, Some(name));
    f
}

/// A network plugin on one node, none on another.
fn plugins(ask: Ask<'_>) -> Option<Finding> {
    // Where every rank names one and the same network, or finished, the difference did no harm.
    if ask.job.nets.len() == 1 || ask.procs().any(|(_, p)| p.log.comms.iter().any(|c| c.complete.is_some())) {
        return None;
    }
    let mut with: Vec<Hit<'_>> = ask.any_of(&["plugin.hpcx", "plugin.ofi", "plugin.loaded"]);
    with.retain(|h| !h.text().contains("TUNER/") && !h.text().contains("PROFILER/") && !h.text().contains("ENV/"));
    let mut without = ask.hits("plugin.none");
    without.retain(|h| h.get("what").is_none_or(|w| w == "NET"));
    let have: BTreeSet<&str> = with.iter().map(|h| network::host_of(ask, h.proc)).filter(|h| !h.is_empty()).collect();
    without.retain(|h| !h.host().is_empty() && !have.contains(network::host_of(ask, h.proc)));
    let (a, b) = (with.iter().find(|h| !h.host().is_empty())?, without.first()?);
    let title = format!("{} loads a network plugin, {} finds none", network::host_of(ask, a.proc), network::host_of(ask, b.proc));
    let mut f = Finding::new(RULE.cause.id, Severity::Warning, Confidence::Likely, title);
    f.why = "One node uses an external network plugin, the other the internal networks. The two differ in what they choose and cannot always talk to each other; the images or the library paths of the nodes differ. If both are parts of different jobs, it means nothing.".to_owned();
    f.hosts = vec![network::host_of(ask, a.proc).to_owned(), network::host_of(ask, b.proc).to_owned()];
    f.evidence = vec![a.evidence(), b.evidence()];
    finish(&mut f, None);
    f.fixes = vec![Fix {
        title: "Use the same image and library path on all nodes".to_owned(),
        when: "One node misses the plugin.".to_owned(),
        commands: vec![
            "echo $LD_LIBRARY_PATH; ldconfig -p | grep libnccl-net   # on both nodes, inside the job".to_owned(),
            "export NCCL_NET_PLUGIN=none   # on all nodes, to go without it".to_owned(),
        ],
        needs: "nothing".to_owned(),
        cost: "Without the plugin its features (SHARP, EFA) are gone.".to_owned(),
        undo: "unset NCCL_NET_PLUGIN".to_owned(),
    }];
    Some(f)
}

/// Ranks of one communicator chose different RDMA networks (a plugin's and the built-in one), and none came through.
fn networks(ask: Ask<'_>) -> Option<Finding> {
    let comm = ask.spanning().into_iter().find(|c| {
        let choice = network::choice(ask, c);
        choice.len() > 1 && !choice.keys().any(|n| network::is_socket(n)) && ask.views(c).all(|(_, l)| l.complete.is_none())
    })?;
    let choice = network::choice(ask, comm);
    let mut sides = choice.iter().filter_map(|(net, members)| {
        let (member, sample) = members.first()?;
        Some((*net, network::host_of(ask, member.proc), evidence(ask.job, member.rank, sample)))
    });
    let (one, other) = (sides.next()?, sides.next()?);
    let title = format!("{} uses the network {}, {} uses {}", one.1, one.0, other.1, other.0);
    let confidence = if ask.any_of(&["socket.closed", "socket.error", "socket.wrong_type"]).is_empty() { Confidence::Possible } else { Confidence::Likely };
    let mut f = Finding::new(RULE.cause.id, Severity::Error, confidence, title);
    f.why = "The ends of a connection must use the same network: a plugin and the built-in one do not understand each other's handshake. The plugin is missing on some nodes, or NCCL_NET or NCCL_NET_PLUGIN did not reach them.".to_owned();
    f.hosts = vec![one.1.to_owned(), other.1.to_owned()];
    f.evidence = vec![one.2, other.2];
    finish(&mut f, None);
    Some(f)
}

fn finish(f: &mut Finding, name: Option<&str>) {
    let name = name.unwrap_or("NCCL_NET_PLUGIN");
    let mut seen: BTreeSet<(String, u64)> = BTreeSet::new();
    f.evidence.retain(|e: &Evidence| seen.insert((e.file.clone(), e.line)));
    f.fixes = vec![Fix {
        title: format!("Set {name} alike on every rank, or nowhere"),
        when: "The launcher does not pass it to all nodes, or one shell, container or module sets it.".to_owned(),
        commands: vec![
            "env | grep NCCL_; cat /etc/nccl.conf ~/.nccl.conf   # inside the job on every node".to_owned(),
            format!("mpirun -x {name} … ; srun --export=ALL … ; ray: runtime_env env_vars; kubernetes: env of every pod"),
        ],
        needs: "nothing".to_owned(),
        ..Fix::default()
    }];
    f.avoid = vec!["Another change on one node only: it moves the difference elsewhere.".to_owned()];
    f.verify = vec![format!("With NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV on all ranks, every rank prints the same value of {name}.")];
}
