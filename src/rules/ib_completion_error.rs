//! ib-completion-error: An RDMA transfer failed for another reason than a peer that does not answer.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::ib::{self, Happening, Status};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "ib-completion-error",
        aliases: &[],
        summary: "An RDMA transfer failed for another reason than a peer that does not answer.",
        explanation: include_str!("ib_completion_error.md"),
    },
    check,
    explains: &["bootstrap-unreachable", "peer-crash", "missing-rank", "collective-mismatch", "collective-timeout", "stall"],
    only_alone: false,
};

/// Requests that were flushed because their queue pair had failed before.
const FLUSHED: i64 = 5;
/// No answer from the peer: another cause.
const NO_ANSWER: i64 = 12;

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let own = ib::completions(ask, |s| s != FLUSHED && s != NO_ANSWER && s != 0);
    let queues: Vec<Hit<'_>> = ib::happenings(ask).into_iter().filter(|(h, _)| *h == Happening::Queue).map(|(_, hit)| hit).collect();
    if let Some(first) = own.first() {
        return vec![by_status(ask, first.num("status").unwrap_or_default(), &own, &queues)];
    }
    if !queues.is_empty() {
        return vec![queue_failed(&queues)];
    }
    let flushed = ib::completions(ask, |s| s == FLUSHED);
    let explained = !ib::completions(ask, |s| s == NO_ANSWER).is_empty() || ask.has("ib.modify_qp") || ask.has("ib.retry_exceeded");
    if flushed.is_empty() || explained {
        return Vec::new();
    }
    vec![only_flushed(ask, &flushed)]
}

fn by_status(ask: Ask<'_>, code: i64, all: &[Hit<'_>], queues: &[Hit<'_>]) -> Finding {
    let hits: Vec<Hit<'_>> = all.iter().filter(|h| h.num("status") == Some(code)).copied().collect();
    let status = ib::status_of(code);
    let name = status.map_or("unknown", |s| s.name);
    // A peer that is only slow or gone gives 13 as well; an unknown number says nothing by itself.
    let confidence = if code == 13 || status.is_none() { Confidence::Likely } else { Confidence::Certain };
    let title = format!("{}: RDMA transfer failed with status {code} ({name})", subject(&hits));
    let mut finding = base(ask, confidence, title, &hits, status);
    finding.why = format!(
        "Completion status {code} is {}. The path to the peer is not the problem: packets arrive.{}{}",
        status.map_or("not known to this tool", |s| s.meaning),
        status.map_or(String::new(), |s| format!(" {}", s.look)),
        if confidence == Confidence::Likely { " A peer that hangs or dies can also lead here; its log tells." } else { "" }
    );
    finding.evidence.extend(queues.iter().take(2).map(Hit::evidence));
    finding
}

fn queue_failed(queues: &[Hit<'_>]) -> Finding {
    let hca = queues.iter().find_map(|h| h.get("hca")).unwrap_or("an HCA");
    let title = format!("{}: {hca} reports a fatal error of a queue", subject(queues));
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, title);
    finding.why = String::from(
        "The driver reports that a queue pair or a completion queue failed (not the port, not the path): a transfer touched memory that it may not touch, or the device ran into an internal error. The kernel log of this node says more.",
    );
    finding.ranks = ranks_of(queues);
    finding.hosts = hosts_of(queues);
    finding.evidence = queues.iter().take(4).map(Hit::evidence).collect();
    finding.fixes = vec![registration(), firmware()];
    finding.avoid = avoid();
    finding.verify = verify();
    finding
}

fn only_flushed(ask: Ask<'_>, hits: &[Hit<'_>]) -> Finding {
    let title = format!("{}: RDMA requests were flushed (status 5); the first failure is not in the log", subject(hits));
    let mut finding = base(ask, Confidence::Likely, title, hits, ib::status_of(FLUSHED));
    finding.why = String::from(
        "Status 5 only says that the queue pair was already in its error state when these requests were thrown away. The first completion with another status, or the event that broke the queue pair, stands above the cut, on another rank or in a log that is missing; a peer that died or a lost link are as possible as a refused transfer.",
    );
    if let Some(p) = ib::silent_peer(ask, hits) {
        let proc = &ask.job.procs[p];
        let who = proc.rank.map_or_else(|| format!("a process on {}", proc.host), |r| format!("rank {r} on {}", proc.host));
        finding.confidence = Confidence::Possible;
        finding.caused_by = Some("peer-crash");
        let _ = write!(finding.why, " The log of {who} just ends while others go on, which makes a dead process the better explanation.");
    }
    finding.avoid = vec!["Acting on this status: it tells neither the path nor the buffer that failed.".to_owned()];
    finding.verify = vec!["The whole logs of all ranks hold a first completion with another status, or an event before it.".to_owned()];
    finding.fixes.insert(
        0,
        Fix {
            title: "Find the first failure".to_owned(),
            when: "Always: this one is only the echo.".to_owned(),
            commands: vec![
                "grep -n -i -e 'Got completion' -e 'async' $ALL_LOGS | grep -v -e 'status=5 ' -e 'error 5,' -e 'WR_FLUSH'".to_owned(),
                "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_DEBUG_FILE=nccl.%h.%p.log on every rank keeps whole logs.".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "None.".to_owned(),
            undo: String::new(),
        },
    );
    finding
}

fn base(ask: Ask<'_>, confidence: Confidence, title: String, hits: &[Hit<'_>], status: Option<&'static Status>) -> Finding {
    let mut finding = Finding::new(RULE.cause.id, Severity::Error, confidence, title);
    finding.ranks = ranks_of(hits);
    finding.hosts = hosts_of(hits);
    for hit in hits {
        if let Some(host) = hit.get("peer").and_then(|p| ib::peer_host(ask, p))
            && !finding.hosts.iter().any(|h| h == host)
        {
            finding.hosts.push(host.to_owned());
        }
    }
    finding.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    finding.fixes = match status.map(|s| s.code) {
        Some(4 | 8 | 10) => vec![registration(), firmware()],
        Some(1 | 9) => vec![agree(), firmware()],
        Some(5) => vec![],
        Some(13) => vec![peer(), firmware()],
        _ => vec![firmware(), agree()],
    };
    finding.avoid = avoid();
    finding.verify = verify();
    finding
}

fn subject(hits: &[Hit<'_>]) -> String {
    let ranks = ranks_of(hits);
    let hcas: BTreeSet<&str> = hits.iter().filter_map(|h| h.get("hca")).collect();
    let who = if ranks.is_empty() { hosts_of(hits).first().cloned().unwrap_or_else(|| "a process".to_owned()) } else { ranks_text(&ranks) };
    match (hcas.len(), hcas.first()) {
        (1, Some(hca)) => format!("{who}, {hca}"),
        _ => who,
    }
}

fn registration() -> Fix {
    Fix {
        title: "See whether GPU Direct RDMA is the reason".to_owned(),
        when: "GPU memory is sent directly (`/GDRDMA` in the channel lines); the IOMMU, ACS or a wrong peer-memory module break its registration.".to_owned(),
        commands: vec!["export NCCL_NET_GDR_LEVEL=LOC   # one run without GPU Direct; if it passes, mend ACS, IOMMU and nvidia-peermem, then take it out".to_owned()],
        needs: "nothing".to_owned(),
        cost: "Data goes through host memory; slower.".to_owned(),
        undo: "unset NCCL_NET_GDR_LEVEL".to_owned(),
    }
}

fn firmware() -> Fix {
    Fix {
        title: "Check the HCA's firmware, driver and the kernel log".to_owned(),
        when: "It comes back on the same device.".to_owned(),
        commands: vec!["sudo dmesg -T | grep -i -e mlx5 -e infiniband -e AER".to_owned(), "ibv_devinfo | grep -e hca_id -e fw_ver   # the same firmware on all nodes".to_owned()],
        needs: "root".to_owned(),
        cost: "None; it only looks.".to_owned(),
        undo: String::new(),
    }
}

fn agree() -> Fix {
    Fix {
        title: "Make both ends agree".to_owned(),
        when: "The nodes differ in library, plugin or settings.".to_owned(),
        commands: vec!["env | grep -e ^NCCL_ | sort   # compare on all nodes: BUFFSIZE, ALGO, PROTO, NCHANNELS, NET_PLUGIN".to_owned()],
        needs: "nothing".to_owned(),
        cost: "None.".to_owned(),
        undo: String::new(),
    }
}

fn peer() -> Fix {
    Fix {
        title: "Look at the peer's process".to_owned(),
        when: "It is alive but does not receive.".to_owned(),
        commands: vec!["py-spy dump --pid $PID_OF_THE_PEER".to_owned()],
        needs: "root".to_owned(),
        cost: "None; it only looks.".to_owned(),
        undo: String::new(),
    }
}

fn avoid() -> Vec<String> {
    vec!["Changing the GID index or the MTU: the path is not what failed.".to_owned(), "Longer time-outs: the status is an answer, not a missing one.".to_owned()]
}

fn verify() -> Vec<String> {
    vec!["ib_write_bw between the two devices runs through, first with host memory, then with GPU memory (--use_cuda=GPU).".to_owned()]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Analysis, Confidence};

    fn texts(status: &str) -> Analysis {
        let text = format!(
            "hosta:11:13 [0] transport/net_ib.cc:2458 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status={status} opcode=0 len=0 vendor err 81 (Send) localGid ::ffff:192.0.2.1 remoteGids::ffff:192.0.2.2 hca mlx5_0\n"
        );
        analyze_texts(&[("rank0.log", &text)])
    }

    fn confidence(analysis: &Analysis) -> Option<Confidence> {
        analysis.findings.iter().find(|f| f.id == "ib-completion-error").map(|f| f.confidence)
    }

    #[test]
    fn refused_transfers_are_certain_and_flushes_likely() {
        assert_eq!(confidence(&texts("4")), Some(Confidence::Certain));
        assert_eq!(confidence(&texts("10")), Some(Confidence::Certain));
        assert_eq!(confidence(&texts("5")), Some(Confidence::Likely));
        assert!(texts("5").findings[0].why.contains("above the cut"));
    }

    #[test]
    fn no_answer_belongs_to_another_cause() {
        let analysis = texts("12");
        assert_eq!(confidence(&analysis), None);
        assert!(analysis.findings.iter().any(|f| f.id == "roce-qp-gid-mtu"));
    }

    #[test]
    fn a_status_by_name_and_a_fatal_event_on_a_queue_pair() {
        let text = "hosta:11:13 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=IBV_WC_REM_OP_ERR(11) opcode=IBV_WC_SEND(0) vendor_err=137  localGid ::ffff:192.0.2.1 remoteGids::ffff:192.0.2.2 hca mlx5_0\n";
        let analysis = analyze_texts(&[("a.log", text)]);
        assert!(analysis.findings[0].title.contains("REM_OP_ERR"), "{}", analysis.findings[0].title);
        let text = "hosta:11:13 [0] NCCL WARN NET/IB : mlx5_0:1 async fatal event on QP (0x7f00) qpn=12 state=6: local access violation work queue error\n";
        assert_eq!(confidence(&analyze_texts(&[("a.log", text)])), Some(Confidence::Certain));
    }
}
