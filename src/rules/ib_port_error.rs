//! ib-port-error: A port of an HCA went down or changed while the job ran.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::ib::{self, Happening};
use super::query::{Ask, Hit, hosts_of, ranks_of};
use super::remedy::sh;
use super::{Cause, Rule};
use crate::digest::Mark;
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "ib-port-error", aliases: &[], summary: "A port of an HCA went down or changed while the job ran.", explanation: include_str!("ib_port_error.md") },
    check,
    explains: &[
        "rail-topology",
        "roce-qp-gid-mtu",
        "ib-completion-error",
        "bootstrap-unreachable",
        "p2p-iommu-acs-hang",
        "peer-crash",
        "missing-rank",
        "collective-mismatch",
        "collective-timeout",
        "stall",
    ],
    only_alone: false,
};

/// What the events amount to, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Device,
    Down,
    Cable,
    Address,
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let events = events(ask);
    let Some(kind) = events.iter().map(|(k, _)| *k).min() else { return Vec::new() };
    let failures = failures(ask);
    let leading: Vec<Hit<'_>> = events.iter().filter(|(k, _)| *k == kind).map(|(_, h)| *h).collect();
    // An event that came after all failures is no reason for them.
    let first = leading[0].at();
    let earlier: Vec<Hit<'_>> = leading.iter().filter(|e| failures.is_empty() || failures.iter().any(|f| before(e.at(), f.at()) != Some(false))).copied().collect();
    let followed = failures.iter().any(|f| before(first, f.at()) != Some(false));
    let back: Vec<Hit<'_>> = ib::happenings(ask).into_iter().filter(|(h, e)| *h == Happening::PortActive && before(first, e.at()) == Some(true)).map(|(_, e)| e).collect();
    let Some((severity, confidence)) = grade(kind, !failures.is_empty() && followed && !earlier.is_empty(), !back.is_empty() || ended_well(ask)) else { return Vec::new() };
    let shown = if earlier.is_empty() { &leading } else { &earlier };
    let mut finding = Finding::new(RULE.cause.id, severity, confidence, title(kind, shown, !back.is_empty()));
    finding.why = why(kind, followed, !back.is_empty());
    finding.ranks = ranks_of(shown);
    finding.hosts = hosts_of(shown);
    finding.evidence = shown.iter().take(3).chain(back.iter().take(1)).chain(failures.iter().take(2)).map(Hit::evidence).collect();
    finding.fixes = fixes(kind, &place(shown).1);
    finding.avoid = vec![
        "Changing GID indexes or time-outs: the addresses were right until the port changed.".to_owned(),
        "NCCL_IB_DISABLE=1 hides the broken port and sends the data over TCP.".to_owned(),
    ];
    finding.verify = verify(&place(shown).1);
    vec![finding]
}

fn grade(kind: Kind, failed: bool, back: bool) -> Option<(Severity, Confidence)> {
    use Confidence::{Certain, Likely, Possible};
    Some(match (kind, failed, back) {
        (Kind::Device, ..) | (Kind::Down, true, _) => (Severity::Error, Certain),
        (Kind::Cable | Kind::Address, true, _) | (Kind::Down, false, false) => (Severity::Error, Likely),
        // It came back, or the run ended well without it.
        (Kind::Down, false, true) => (Severity::Warning, Likely),
        (Kind::Address, false, _) => (Severity::Info, Possible),
        // A kernel log tells of every port since the boot; without a failure it is history.
        (Kind::Cable, false, _) => return None,
    })
}

fn events(ask: Ask<'_>) -> Vec<(Kind, Hit<'_>)> {
    let mut list: Vec<(Kind, Hit<'_>)> = ib::happenings(ask)
        .into_iter()
        .filter_map(|(happening, hit)| {
            let kind = match happening {
                Happening::Device => Kind::Device,
                Happening::PortDown => Kind::Down,
                Happening::Address => Kind::Address,
                _ => return None,
            };
            Some((kind, hit))
        })
        .collect();
    list.extend(ask.hits("kernel.mlx5_health").into_iter().map(|h| (Kind::Device, h)));
    list.extend(ask.hits("kernel.mlx5_link_down").into_iter().map(|h| (Kind::Cable, h)));
    list
}

/// Communicators were destroyed in good order, and none was aborted.
fn ended_well(ask: Ask<'_>) -> bool {
    let ends: Vec<bool> = ask.procs().flat_map(|(_, p)| p.log.comms.iter().filter_map(|c| c.end.as_ref().map(|(aborted, _)| *aborted))).collect();
    !ends.is_empty() && ends.iter().all(|aborted| !aborted)
}

fn failures(ask: Ask<'_>) -> Vec<Hit<'_>> {
    ask.any_of(&["ib.completion", "ib.retry_exceeded", "ib.modify_qp", "ib.modify_qp_retry", "ib.query_failed"])
}

/// Whether `a` came before `b`: by place in one stream, by time across streams; `None` if nothing tells.
fn before(a: Mark, b: Mark) -> Option<bool> {
    if a.stream == b.stream {
        return Some(a.line <= b.line);
    }
    let (x, y) = (a.time?, b.time?);
    (x.clock == y.clock).then_some(x.micros <= y.micros)
}

/// Hosts and devices of the events, for the title and the commands.
fn place(hits: &[Hit<'_>]) -> (String, String) {
    let hcas: BTreeSet<&str> = hits.iter().filter_map(|h| h.get("hca").or(h.get("if"))).collect();
    let hosts = hosts_of(hits);
    let host = match hosts.len() {
        0 => String::new(),
        1 => format!("{}: ", hosts[0]),
        n => format!("{} and {} more: ", hosts[0], n - 1),
    };
    (host, hcas.first().map_or_else(|| "HCA".to_owned(), |hca| (*hca).to_owned()))
}

fn title(kind: Kind, hits: &[Hit<'_>], back: bool) -> String {
    let (host, hca) = place(hits);
    let hca = if hca == "HCA" { "an HCA".to_owned() } else { hca };
    match kind {
        Kind::Device => format!("{host}{hca} reports a fatal device error"),
        Kind::Down if back => format!("{host}the port of {hca} went down and came back"),
        Kind::Down => format!("{host}the port of {hca} went down"),
        Kind::Cable => format!("{host}the kernel reports that the link of {hca} went down"),
        Kind::Address => format!("{host}the addresses of {hca} changed while the job ran"),
    }
}

fn why(kind: Kind, followed: bool, back: bool) -> String {
    let mut text = match kind {
        Kind::Device => "The driver reports a catastrophic error of the device: firmware, PCIe or hardware. All its queue pairs are lost.".to_owned(),
        Kind::Down => "The driver reports that the port lost its link. A queue pair survives a few seconds without it, then its transfers end with status 12.".to_owned(),
        Kind::Cable => "The kernel log says that the network card's link went down.".to_owned(),
        Kind::Address => "The driver reports that the port's table of addresses changed: an address of the interface was added, removed or moved (DHCP, NetworkManager, a bond that switched, an operator). Queue pairs that use the old entry die.".to_owned(),
    };
    if followed {
        text.push_str(" The failed transfers and connections in the log follow from it.");
    }
    if back {
        text.push_str(" The port became active again later; NCCL does not repair queue pairs that died meanwhile.");
    }
    text
}

fn fixes(kind: Kind, hca: &str) -> Vec<Fix> {
    let hca = sh(hca);
    let look = Fix {
        title: "Find out why the port changed".to_owned(),
        when: "Always; it will happen again.".to_owned(),
        commands: vec![
            "sudo dmesg -T | grep -i -e mlx5 -e 'link down' -e 'link up'".to_owned(),
            format!("rdma link show; ibstat {hca}"),
            format!("grep . /sys/class/infiniband/{hca}/ports/1/counters/{{link_downed,symbol_error,link_error_recovery}}"),
        ],
        needs: "root".to_owned(),
        cost: "None; it only looks.".to_owned(),
        undo: String::new(),
    };
    let act = match kind {
        Kind::Device => Fix {
            title: "Reset the device or take the node out".to_owned(),
            when: "The device stays in its fatal state, or it happens again.".to_owned(),
            commands: vec!["sudo mlxfwreset -d $PCI_ADDRESS reset   # or reboot the node; then update the firmware".to_owned()],
            needs: "reboot".to_owned(),
            cost: "The node is away for some minutes.".to_owned(),
            undo: String::new(),
        },
        Kind::Address => Fix {
            title: "Keep the addresses of the fabric's interfaces still".to_owned(),
            when: "DHCP, NetworkManager or a bond rewrites them while jobs run.".to_owned(),
            commands: vec![
                format!("IF=$(ls /sys/class/infiniband/{hca}/device/net | head -n 1); ip -ts monitor address dev $IF   # shows who changes what, when"),
                "nmcli device set $IF managed no   # with a static address that another tool keeps".to_owned(),
            ],
            needs: "root".to_owned(),
            cost: "The address has to be kept by hand.".to_owned(),
            undo: "nmcli device set $IF managed yes".to_owned(),
        },
        _ => Fix {
            title: "Mend the link: cable, transceiver, switch port".to_owned(),
            when: "The counters grow or the kernel tells of link changes.".to_owned(),
            commands: vec![
                format!("sudo mlxlink -d {hca} -c -e   # signal quality, cable and error counters"),
                "Swap cable and transceiver with a good port and see which one the errors follow.".to_owned(),
            ],
            needs: "root".to_owned(),
            cost: "The port is away while the cable is changed.".to_owned(),
            undo: String::new(),
        },
    };
    vec![look, act]
}

fn verify(hca: &str) -> Vec<String> {
    let hca = sh(hca);
    vec![
        format!("cat /sys/class/infiniband/{hca}/ports/1/{{state,phys_state,rate}}: ACTIVE, LinkUp and the full rate; link_downed no longer grows."),
        format!("ib_write_bw -d {hca} -F --report_gbits for some minutes between the two nodes without an error."),
    ]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Analysis, Confidence, Finding, Severity};

    fn found(analysis: &Analysis) -> Option<&Finding> {
        analysis.findings.iter().find(|f| f.id == "ib-port-error")
    }

    const USING: &str = "hosta:11:11 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";

    #[test]
    fn a_port_error_before_a_completion_error_is_the_cause() {
        let text = format!(
            "{USING}hosta:11:12 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : mlx5_0:1 Got async error event: port error\nhosta:11:13 [0] transport/net_ib.cc:2458 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid ::ffff:192.0.2.1 remoteGids::ffff:192.0.2.2 hca mlx5_0\n"
        );
        let analysis = analyze_texts(&[("rank0.log", &text)]);
        let finding = found(&analysis).expect("port error");
        assert_eq!((finding.severity, finding.confidence), (Severity::Error, Confidence::Certain));
        assert!(finding.title.contains("mlx5_0") && finding.title.contains("hosta"), "{}", finding.title);
        let qp = analysis.findings.iter().find(|f| f.id == "roce-qp-gid-mtu").expect("consequence");
        assert_eq!(qp.caused_by, Some("ib-port-error"));
    }

    #[test]
    fn a_flap_that_healed_is_a_warning() {
        let text = "hosta:11:12 [0] NCCL WARN NET/IB : mlx5_1:1 Got non-fatal async event: port error(10)\nhosta:11:12 [0] NCCL WARN NET/IB : mlx5_1:1 Got non-fatal async event: port active(9)\n";
        let analysis = analyze_texts(&[("rank0.log", text)]);
        let finding = found(&analysis).expect("flap");
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("came back"), "{}", finding.title);
    }

    #[test]
    fn harmless_events_are_no_alarm() {
        let text = format!(
            "{USING}hosta:11:12 [0] NCCL WARN NET/IB : mlx5_1:1 Got non-fatal async event: client reregistration(17)\nhosta:11:12 [0] NCCL WARN NET/IB : mlx5_1:1 GID table changed\n"
        );
        let analysis = analyze_texts(&[("rank0.log", &text)]);
        assert!(found(&analysis).is_none_or(|f| f.severity == Severity::Info), "{:?}", analysis.findings);
    }

    #[test]
    fn an_event_after_the_failure_does_not_explain_it() {
        let text = format!(
            "{USING}hosta:11:13 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 0, len 0, vendor err 129\nhosta:11:12 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : GID table change\n"
        );
        let analysis = analyze_texts(&[("rank0.log", &text)]);
        assert!(found(&analysis).is_none_or(|f| f.severity == Severity::Info), "{:?}", analysis.findings);
    }
}
