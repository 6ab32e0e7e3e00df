//! What speaks against a cause, told by cause: lines that exclude it, and settings that hide what would show it.

use super::Reason;
use crate::event::Library;
use crate::rules::query::{Ask, Hit, evidence, ranks_text};
use crate::rules::{network, tree, waiting};

type Hook = fn(Ask<'_>) -> Vec<Reason>;

/// Causes of which lines can say that they are not at work.
const AGAINST: &[(&str, Hook)] = &[
    ("tcp-fallback", tcp_fallback),
    ("roce-qp-gid-mtu", queue_pairs),
    ("ib-completion-error", between_nodes),
    ("rail-topology", between_nodes),
    ("p2p-iommu-acs-hang", p2p),
    ("rccl-sdma-rdna", radeon),
    ("missing-rank", missing_rank),
    ("bootstrap-unreachable", met),
    ("version-mismatch", one_version),
];

/// Causes whose lines need a subsystem that is off by default: (cause, subsystem, kinds that show that it was on, what it shows).
const HIDDEN: &[(&str, &str, &[&str], &str)] = &[
    ("roce-qp-gid-mtu", "NET", &["ib.qp_info", "gdr.enabled", "gdr.disabled"], "GIDs, MTU and retries of queue pairs"),
    ("gdr-disabled", "NET", &["ib.qp_info", "gdr.enabled", "gdr.disabled"], "whether GPU Direct RDMA is in use"),
    ("ib-port-error", "NET", &["ib.qp_info", "gdr.enabled", "gdr.disabled"], "events of the HCA's ports"),
];

/// Lines against the cause.
pub fn against(ask: Ask<'_>, cause: &str) -> Vec<Reason> {
    AGAINST.iter().find(|(id, _)| *id == cause).map_or_else(Vec::new, |(_, hook)| hook(ask))
}

/// What the settings of the run hide.
pub fn hidden(ask: Ask<'_>, cause: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if !ask.procs().any(|(_, p)| p.nccl) {
        reasons.push(Reason::plain("No line of the library is in these logs; NCCL_DEBUG=INFO on every rank prints them."));
        return reasons;
    }
    for (_, subsystem, kinds, what) in HIDDEN.iter().filter(|(id, ..)| *id == cause) {
        if ask.any_of(kinds).is_empty() {
            reasons.push(Reason::plain(format!("Lines of the subsystem {subsystem} are not in these logs; NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,{subsystem} would show {what}.")));
        }
    }
    let calls = ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| l.calls.len > 0);
    if cause == "collective-mismatch" && !calls {
        reasons.push(Reason::plain("The ranks' calls are not in these logs; NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,COLL for one run lets them be compared."));
    }
    reasons
}

fn single(ask: Ask<'_>) -> Option<Reason> {
    let (next, line) = tree::topology(ask)?;
    let hosts = ask.hosts().join(", ");
    (next == "q-p2p-nvidia-or-amd-r9700").then(|| Reason::shown(format!("All ranks of the job are on one node ({hosts}); nothing of it travels between nodes."), line))
}

fn between_nodes(ask: Ask<'_>) -> Vec<Reason> {
    single(ask).into_iter().collect()
}

fn cluster(ask: Ask<'_>) -> Option<Reason> {
    let (next, line) = tree::topology(ask)?;
    (next == "q-rocev2-socket-or-qp-error").then(|| Reason::shown("The job spans several nodes.", line))
}

/// Networks of the communicators that span nodes: name, a line, whether it is TCP.
fn networks(ask: Ask<'_>) -> Vec<(String, Reason)> {
    let mut list: Vec<(String, Reason)> = Vec::new();
    for comm in ask.spanning() {
        for (net, members) in network::choice(ask, comm) {
            if let Some((member, sample)) = members.first()
                && !list.iter().any(|(known, _)| known == net)
            {
                list.push((net.to_owned(), Reason::shown(format!("Data between nodes goes over {net}."), evidence(ask.job, member.rank, sample))));
            }
        }
    }
    list
}

fn tcp_fallback(ask: Ask<'_>) -> Vec<Reason> {
    if let Some(reason) = single(ask) {
        return vec![reason];
    }
    networks(ask).into_iter().filter(|(net, _)| !network::is_socket(net)).map(|(_, reason)| reason).collect()
}

fn queue_pairs(ask: Ask<'_>) -> Vec<Reason> {
    if let Some(reason) = single(ask) {
        return vec![reason];
    }
    let nets = networks(ask);
    if !nets.is_empty() && nets.iter().all(|(net, _)| network::is_socket(net)) {
        return nets.into_iter().map(|(_, r)| Reason { text: format!("{} TCP has no queue pairs.", r.text), ..r }).collect();
    }
    let other = ask.hits("ib.completion").into_iter().find(|h| h.num("status").is_some_and(|s| s != 12));
    other.map(|h| Reason::shown(format!("The completions that failed have status {}, not 12.", h.num("status").unwrap_or_default()), h.evidence())).into_iter().collect()
}

fn progress(ask: Ask<'_>) -> Option<Reason> {
    if !waiting::progressed(ask) {
        return None;
    }
    let proof = crate::event::tables::PROOF_OF_COLLECTIVE;
    let line = ask.any_of(proof).first().map(Hit::evidence);
    let ended = || ask.comms().flat_map(|c| ask.views(c)).find_map(|(m, l)| l.end.as_ref().filter(|(aborted, _)| !aborted).map(|(_, s)| evidence(ask.job, m.rank, s)));
    Some(Reason { text: "Collectives have finished, so the path between the GPUs works.".to_owned(), evidence: line.or_else(ended) })
}

fn p2p(ask: Ask<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if ask.job.library == Some(Library::Rccl) {
        let line = ask.hits("init.version").first().map(Hit::evidence);
        reasons.push(Reason { text: "The library is RCCL; on AMD cards it would be rccl-sdma-rdna.".to_owned(), evidence: line });
    }
    reasons.extend(cluster(ask));
    reasons.extend(progress(ask));
    reasons.extend(waiting::p2p_switched_off(ask).map(|s| Reason::shown(format!("P2P is switched off by {}={}.", s.name, s.value), s.evidence())));
    reasons.extend(ask.any_of(&["p2p.disabled", "p2p.not_enabled"]).first().map(|h| Reason::shown("P2P is not in use between these GPUs.", h.evidence())));
    if reasons.is_empty()
        && let Some(world) = ask.job.world()
    {
        let local = waiting::local(ask, world);
        let other = local.shm.into_iter().chain(local.net).next();
        reasons.extend(other.filter(|_| local.p2p.is_empty()).map(|l| Reason::shown(format!("The ranks of this host talk over {}, not over P2P.", l.via), l.line)));
    }
    reasons
}

fn radeon(ask: Ask<'_>) -> Vec<Reason> {
    if ask.job.library == Some(Library::Nccl) {
        let line = ask.hits("init.version").first().map(Hit::evidence);
        return vec![Reason { text: "The library is NCCL, so these are NVIDIA cards.".to_owned(), evidence: line }];
    }
    cluster(ask).into_iter().chain(progress(ask)).collect()
}

fn missing_rank(ask: Ask<'_>) -> Vec<Reason> {
    let Some(world) = ask.job.world().filter(|w| waiting::is_whole(w)) else { return Vec::new() };
    let Some((m, log)) = ask.views(world).find(|(_, l)| l.complete.is_some()).filter(|_| ask.all_complete()) else { return Vec::new() };
    let line = log.complete.as_ref().map(|s| evidence(ask.job, m.rank, s));
    vec![Reason { text: format!("All {} ranks of the largest communicator have a log and reached Init COMPLETE.", world.members.len()), evidence: line }]
}

fn met(ask: Ask<'_>) -> Vec<Reason> {
    let Some(world) = ask.job.world() else { return Vec::new() };
    let through: Vec<u32> = world.members.iter().filter(|m| network::bootstrapped(ask, m.proc)).filter_map(|m| m.rank).collect();
    if through.is_empty() {
        return Vec::new();
    }
    let line = ask.views(world).find_map(|(m, l)| l.complete.as_ref().map(|s| evidence(ask.job, m.rank, s)));
    vec![Reason { text: format!("The bootstrap ended: {} went beyond it, which takes all ranks.", ranks_text(&through)), evidence: line }]
}

fn one_version(ask: Ask<'_>) -> Vec<Reason> {
    let [only] = ask.job.versions.as_slice() else { return Vec::new() };
    let hits = ask.hits("init.version");
    hits.first().map(|h| Reason::shown(format!("Every process that names its version says {only}."), h.evidence())).into_iter().collect()
}
