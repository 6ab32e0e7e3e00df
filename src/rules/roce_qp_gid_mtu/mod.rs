//! roce-qp-gid-mtu: RDMA was chosen, but its queue pairs cannot be connected or die: GID, MTU or link.

mod advice;
mod facts;
mod host;
mod reading;
#[cfg(test)]
mod tests;

use super::finding::{Finding, Severity};
use super::query::{Ask, Hit, hosts_of, ranks_of};
use super::{Cause, Rule};
use facts::Facts;
use std::fmt::Write;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "roce-qp-gid-mtu",
        aliases: &[],
        summary: "RDMA was chosen, but its queue pairs cannot be connected or die: GID, MTU or link.",
        explanation: include_str!("../roce_qp_gid_mtu.md"),
    },
    check,
    explains: &["ib-completion-error", "bootstrap-unreachable", "peer-crash", "missing-rank", "p2p-iommu-acs-hang", "collective-mismatch", "collective-timeout", "stall"],
    only_alone: false,
};

const PATH: [&str; 3] = ["q-cluster-or-single-host-p2p", "q-rocev2-socket-or-qp-error", "sol-rocev2-gid-index-mtu9000"];

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let Some(facts) = Facts::gather(ask) else { return Vec::new() };
    let reading = reading::read(&facts);
    let hits: Vec<Hit<'_>> = facts.failures.iter().map(|f| f.hit).collect();
    let title = clip(format!("{}: {}", reading::subject(&facts), reading.what));
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, reading.confidence, title);
    finding.ranks = ranks_of(&hits);
    finding.hosts = hosts_of(&hits);
    finding.why.clone_from(&reading.why);
    if let Some(peer) = facts.lead().peer {
        let host = super::ib::peer_host(ask, peer).map_or(String::new(), |h| format!(" ({h})"));
        let _ = write!(finding.why, " The peer is {}{host}.", super::ib::peer_ip(peer));
    }
    finding.evidence = reading::evidence(&facts);
    finding.evidence.extend(reading.proof.iter().cloned());
    finding.evidence.truncate(6);
    finding.fixes = advice::fixes(&facts, &reading);
    finding.avoid = advice::avoid(&reading);
    finding.verify = advice::verify(&facts, &reading);
    finding.path = PATH.to_vec();
    finding.caused_by = reading.caused_by;
    vec![finding]
}

/// A title of at most 100 characters.
fn clip(title: String) -> String {
    if title.chars().count() <= 100 {
        return title;
    }
    title.chars().take(99).chain(['…']).collect()
}
