//! memlock-limit: The limit on locked memory is too low for RDMA.

use super::facts;
use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};
use crate::digest::{Fact, Limit};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "memlock-limit", aliases: &[], summary: "The limit on locked memory is too low for RDMA.", explanation: include_str!("memlock_limit.md") },
    check,
    explains: &[
        "ib-device-missing",
        "roce-qp-gid-mtu",
        "ib-completion-error",
        "bootstrap-unreachable",
        "p2p-iommu-acs-hang",
        "peer-crash",
        "missing-rank",
        "gdr-disabled",
        "collective-timeout",
        "stall",
    ],
    only_alone: false,
};

/// The calls that pin memory.
const CALLS: [&str; 6] = ["ib.create_cq", "ib.create_qp", "ib.alloc_pd", "ib.reg_mr", "ib.modify_qp", "ib.call_failed"];

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let calls = ask.any_of(&CALLS);
    let told: Vec<Hit<'_>> = calls.iter().filter(|h| no_memory(h)).copied().collect();
    let hits = if told.is_empty() { calls.into_iter().filter(bare).collect() } else { told };
    let Some(first) = hits.first() else { return Vec::new() };
    let limits = limits(ask, &hits);
    let low = limits.iter().any(|l| l.value != Limit::Unlimited);
    let confidence = match (bare(first), low) {
        (false, true) => Confidence::Certain,
        // Without a limit something else ran out.
        (false, false) if !limits.is_empty() => Confidence::Possible,
        (false, false) | (true, true) => Confidence::Likely,
        (true, false) => Confidence::Possible,
    };
    let call = call_name(first);
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, confidence, format!("{}: {call} fails for lack of lockable memory", subject(&hits)));
    finding.why = why(first, &limits, &call);
    finding.ranks = ranks_of(&hits);
    finding.hosts = hosts_of(&hits);
    finding.evidence = hits.iter().take(4).map(Hit::evidence).chain(limits.iter().take(2).map(|l| facts::evidence(ask, &l.at))).collect();
    finding.fixes = fixes();
    finding.avoid =
        vec!["Smaller NCCL_BUFFSIZE or fewer channels: it fails later, with more ranks on the node.".to_owned(), "NCCL_IB_DISABLE=1 sends the data over TCP.".to_owned()];
    finding.verify = vec!["grep 'Max locked memory' /proc/$PID_OF_A_RANK/limits says unlimited, inside the container and under the scheduler.".to_owned()];
    vec![finding]
}

fn no_memory(hit: &Hit<'_>) -> bool {
    hit.num("errno") == Some(12) || hit.text().contains("Cannot allocate memory")
}

/// Up to 2.13 the call fails without a reason.
fn bare(hit: &Hit<'_>) -> bool {
    matches!(hit.entry.kind.as_str(), "ib.create_cq" | "ib.create_qp" | "ib.alloc_pd" | "ib.reg_mr") && hit.text().trim_end().ends_with("failed")
}

fn call_name(hit: &Hit<'_>) -> String {
    let text = hit.text();
    let at = text.find("ibv_").unwrap_or(0);
    text[at..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().filter(|n| n.len() > 4).unwrap_or("an RDMA call").to_owned()
}

fn subject(hits: &[Hit<'_>]) -> String {
    let ranks = ranks_of(hits);
    let hosts = hosts_of(hits);
    match (ranks.is_empty(), hosts.as_slice()) {
        (false, [host]) => format!("{} on {host}", ranks_text(&ranks)),
        (false, _) => ranks_text(&ranks),
        (true, [host, ..]) => host.clone(),
        (true, []) => "a process".to_owned(),
    }
}

/// The limits of the failing hosts, as far as facts show them; low ones first.
fn limits<'a>(ask: Ask<'a>, hits: &[Hit<'_>]) -> Vec<&'a Fact<Limit>> {
    let hosts: BTreeSet<Option<usize>> = hits.iter().map(|h| h.process().host_index).collect();
    let known: Vec<&'a Fact<Limit>> = facts::nodes(ask).filter(|n| n.host.is_none() || hosts.contains(&n.host)).filter_map(|n| n.facts.memlock.as_ref()).collect();
    let (low, none): (Vec<_>, Vec<_>) = known.into_iter().partition(|l| l.value != Limit::Unlimited);
    low.into_iter().chain(none).collect()
}

fn why(first: &Hit<'_>, limits: &[&Fact<Limit>], call: &str) -> String {
    let mut text = if bare(first) {
        format!(
            "{call} failed as soon as RDMA connections were made. This version of NCCL does not print the reason; a limit on locked memory is the usual one, a sick HCA the other."
        )
    } else {
        format!("{call} was refused with 'Cannot allocate memory'. RDMA pins host memory, and the process may not pin as much as it needs; it is host memory, not GPU memory.")
    };
    let kib = limits.iter().find_map(|l| if let Limit::Value(bytes) = l.value { Some(bytes / 1024) } else { None });
    if let Some(kib) = kib {
        let _ = write!(text, " The host's facts show the limit: {kib} KiB where it should say unlimited.");
    } else if !limits.is_empty() {
        text.push_str(" But by the host's facts there is no limit on locked memory, as far as that shell and the ranks share it: the HCA may be out of queue pairs or registrations, or a cgroup limits the ranks.");
    } else {
        text.push_str(" If `ulimit -l` says unlimited there, the HCA ran out of queue pairs or registrations, or a cgroup limits them.");
    }
    text
}

fn fixes() -> Vec<Fix> {
    let fix = |title: &str, when: &str, commands: &[&str], needs: &str, undo: &str| Fix {
        title: title.to_owned(),
        when: when.to_owned(),
        commands: commands.iter().map(|c| (*c).to_owned()).collect(),
        needs: needs.to_owned(),
        cost: "None; a process may then pin as much memory as it wants.".to_owned(),
        undo: undo.to_owned(),
    };
    vec![
        fix(
            "Lift the limit in the container",
            "The ranks run in Docker, Podman or Kubernetes.",
            &["docker run --ulimit memlock=-1:-1 --ulimit stack=67108864 …   # Kubernetes: the container runtime's service needs LimitMEMLOCK=infinity"],
            "root",
            "Start it without the option.",
        ),
        fix(
            "Lift the limit for users and services",
            "The ranks are started by ssh, a service or a scheduler.",
            &[
                "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo tee /etc/security/limits.d/99-rdma.conf   # then log in again",
                "sudo systemctl edit slurmd   # [Service] LimitMEMLOCK=infinity; slurm.conf: PropagateResourceLimitsExcept=MEMLOCK",
            ],
            "root",
            "Remove the file and the drop-in.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Analysis, Confidence};

    fn confidence(analysis: &Analysis) -> Option<Confidence> {
        analysis.findings.iter().find(|f| f.id == "memlock-limit").map(|f| f.confidence)
    }

    #[test]
    fn the_errno_and_the_limit_decide() {
        let line = "hosta:7:8 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory\n";
        let analysis = analyze_texts(&[("rank0.log", line)]);
        assert_eq!(confidence(&analysis), Some(Confidence::Likely));
        assert!(analysis.findings[0].title.contains("ibv_create_cq"), "{}", analysis.findings[0].title);
        let with_limit = format!("{line}Max locked memory         65536                65536                bytes\n");
        assert_eq!(confidence(&analyze_texts(&[("rank0.log", &with_limit)])), Some(Confidence::Certain));
    }

    #[test]
    fn old_versions_do_not_say_why() {
        let line = "hosta:7:8 [0] misc/ibvwrap.cc:268 NCCL WARN Call to ibv_create_cq failed\n";
        assert_eq!(confidence(&analyze_texts(&[("rank0.log", line)])), Some(Confidence::Possible));
    }

    #[test]
    fn a_bad_address_is_another_matter() {
        let line = "hosta:7:8 [0] misc/ibvwrap.cc:172 NCCL WARN Call to ibv_reg_mr failed with error Bad address\n";
        assert_eq!(confidence(&analyze_texts(&[("rank0.log", line)])), None);
        let line = "hosta:7:8 [0] misc/ibvwrap.cc:206 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument errno 22\n";
        assert_eq!(confidence(&analyze_texts(&[("rank0.log", line)])), None);
    }
}
