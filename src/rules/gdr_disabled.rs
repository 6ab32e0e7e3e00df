//! gdr-disabled: RDMA runs without GPU Direct although it was asked for or worked before.

use super::finding::{Confidence, Evidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, SettingHit, hosts_of, ranks_of, ranks_text};
use super::remedy::sh;
use super::verdict::works;
use super::{Cause, Rule};
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: "gdr-disabled",
        aliases: &[],
        summary: "RDMA runs without GPU Direct although it was asked for or worked before.",
        explanation: include_str!("gdr_disabled.md"),
    },
    check,
    explains: &["collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    if !rdma(ask) {
        return Vec::new();
    }
    let found = broken(ask).or_else(|| refused(ask)).or_else(|| forbidden(ask)).or_else(|| one_node(ask)).or_else(|| asked(ask)).or_else(|| absent(ask));
    found.into_iter().collect()
}

/// Data between nodes goes over RDMA, as far as the log tells. TCP never uses GPU Direct.
fn rdma(ask: Ask<'_>) -> bool {
    let nets = &ask.job.nets;
    nets.iter().any(|n| !n.eq_ignore_ascii_case("Socket")) || (nets.is_empty() && (ask.has("ib.reg_mr") || !states(ask, "Enabled").is_empty()))
}

/// The HCAs whose line says `Enabled` or `Disabled`.
fn states<'a>(ask: Ask<'a>, state: &str) -> Vec<Hit<'a>> {
    ask.hits("gdr.state").into_iter().filter(|h| h.get("state") == Some(state) && h.get("net") != Some("Socket")).collect()
}

/// Whether a process sends GPU memory directly.
fn uses_gdr(hit: &Hit<'_>) -> bool {
    let p = hit.process();
    p.log.comms.iter().any(|c| c.channels.iter().any(|ch| ch.via.contains("GDRDMA"))) || p.log.ledger.of("gdr.enabled").next().is_some()
}

/// The registration of GPU memory fails.
fn broken(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("ib.reg_mr").into_iter().filter(|h| h.text().contains("Bad address") || h.text().contains("errno 14")).collect();
    let first = hits.first()?;
    let direct = hits.iter().any(uses_gdr) || wish(ask).is_some();
    let confidence = if direct { Confidence::Likely } else { Confidence::Possible };
    let mut finding = finding(&hits, Severity::Error, confidence, "GPU memory cannot be registered with the HCA (Bad address)");
    finding.why = if direct {
        "GPU Direct RDMA was chosen, but the HCA's driver cannot reach the GPU's memory: the peer-memory module (nvidia-peermem) is missing or does not fit the drivers, or DMA-BUF is not supported. A pointer that was freed meanwhile would give the same text.".to_owned()
    } else {
        "The driver refuses to register a buffer. 'Bad address' is what a GPU pointer gives without a working peer-memory module; the log does not show that GPU memory is sent directly, so it may also be host memory (then look at the limit on locked memory and at the driver).".to_owned()
    };
    finding.evidence.extend(wish(ask).map(|s| s.evidence()));
    finding.hosts = hosts_of(&[*first]);
    finding.fixes = vec![module(), off()];
    Some(finding)
}

/// The registration fails with another error than those of a missing module or a limit.
fn refused(ask: Ask<'_>) -> Option<Finding> {
    let mut hits = ask.hits("ib.reg_mr");
    hits.retain(|h| h.get("error").is_some_and(|e| !e.contains("Cannot allocate memory")) && h.entry.first.level != Some(crate::digest::SampleLevel::Info));
    let first = *hits.first()?;
    if works(ask) {
        return None;
    }
    let error = first.get("error")?;
    let unsupported = first.text().contains("dmabuf") && (error.contains("not supported") || error.contains("not implemented"));
    let (confidence, what) =
        if unsupported { (Confidence::Likely, "the HCA's driver takes no DMA-BUF memory") } else { (Confidence::Possible, "the HCA's driver refuses to register a buffer") };
    let mut finding = finding(&hits, Severity::Error, confidence, &format!("{what} ({error})"));
    finding.why = if unsupported {
        "NCCL hands GPU memory to the HCA as a DMA-BUF because the GPU's driver offers it, and the HCA's driver or rdma-core cannot take one. Some versions do not fall back to the peer-memory module by themselves.".to_owned()
    } else {
        format!(
            "The call that makes a buffer reachable for the HCA failed ({error}). A limit on locked memory has other words. Drivers of GPU and HCA that do not fit together, DMA-BUF, the registration of the program's own buffers and relaxed ordering are what is left; one run without each tells which."
        )
    };
    finding.fixes = vec![
        Fix {
            title: "Run without DMA-BUF".to_owned(),
            when: if unsupported { "Now; then update the HCA's driver.".to_owned() } else { "First.".to_owned() },
            commands: vec!["export NCCL_DMABUF_ENABLE=0   # needs nvidia-peermem for GPU Direct: lsmod | grep nvidia_peermem".to_owned()],
            needs: "nothing".to_owned(),
            cost: "Without the module data goes through host memory.".to_owned(),
            undo: "unset NCCL_DMABUF_ENABLE".to_owned(),
        },
        Fix {
            title: "Do not register the program's own buffers".to_owned(),
            when: "It fails inside a collective, not at the start.".to_owned(),
            commands: vec![
                "export NCCL_LOCAL_REGISTER=0 NCCL_GRAPH_REGISTER=0".to_owned(),
                "export NCCL_IB_PCI_RELAXED_ORDERING=0   # if the driver knows no relaxed ordering".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "Data is copied once more.".to_owned(),
            undo: "unset NCCL_LOCAL_REGISTER NCCL_GRAPH_REGISTER NCCL_IB_PCI_RELAXED_ORDERING".to_owned(),
        },
        off(),
    ];
    finding.verify = vec!["The new log reaches `Init COMPLETE` on every rank, and a collective finishes.".to_owned()];
    Some(finding)
}

/// The setting that asks for GPU Direct: a level that lets it happen.
fn wish(ask: Ask<'_>) -> Option<SettingHit<'_>> {
    level(ask, |v| !forbids(v)).or_else(|| ask.switched_on("NCCL_IB_CUDA_SUPPORT"))
}

/// The level under its name of today, or that of 2.4 and older.
fn level(ask: Ask<'_>, test: impl Fn(&str) -> bool + Copy) -> Option<SettingHit<'_>> {
    ask.setting_where("NCCL_NET_GDR_LEVEL", test).or_else(|| ask.setting_where("NCCL_IB_GDR_LEVEL", test))
}

fn forbids(value: &str) -> bool {
    matches!(value.trim(), "LOC" | "0")
}

/// A level excludes every GPU.
fn forbidden(ask: Ask<'_>) -> Option<Finding> {
    let setting = level(ask, forbids)?;
    let far = ask.hits("gdr.disabled");
    let able = states(ask, "Enabled");
    let disabled = states(ask, "Disabled");
    // Without a module the level changes nothing.
    if able.is_empty() && !disabled.is_empty() {
        return None;
    }
    let confidence = if able.is_empty() { Confidence::Likely } else { Confidence::Certain };
    let mut finding = finding(&far, Severity::Warning, confidence, &format!("{}={} forbids GPU Direct RDMA", setting.name, setting.value));
    finding.why = format!(
        "{}={} was set by the user and excludes every GPU, {}. Data between nodes goes through host memory.",
        setting.name,
        setting.value,
        if able.is_empty() { "whatever the HCA supports" } else { "although the HCA supports GPU Direct RDMA" }
    );
    finding.evidence.insert(0, setting.evidence());
    finding.evidence.extend(able.first().map(Hit::evidence));
    finding.fixes = vec![Fix {
        title: format!("Take {} out", setting.name),
        when: "It is a left-over; a level such as PXB or SYS widens what NCCL would choose by itself.".to_owned(),
        commands: vec![format!("unset {}", setting.name)],
        needs: "nothing".to_owned(),
        cost: "None; if GPU Direct is broken on these nodes the old error comes back.".to_owned(),
        undo: format!("export {}={}", setting.name, sh(setting.value)),
    }];
    Some(finding)
}

/// One node has it, another has not.
fn one_node(ask: Ask<'_>) -> Option<Finding> {
    let (on, off_hits) = (states(ask, "Enabled"), states(ask, "Disabled"));
    let with: BTreeSet<&str> = on.iter().map(Hit::host).collect();
    let without: Vec<Hit<'_>> = off_hits.into_iter().filter(|h| !h.host().is_empty() && !with.contains(h.host())).collect();
    if with.is_empty() || without.is_empty() {
        return None;
    }
    let mut finding = finding(&without, Severity::Warning, Confidence::Likely, "this node has no GPU Direct RDMA, others have it");
    finding.why = format!(
        "The HCAs of {} report that GPU Direct RDMA is disabled, those of {} that it is enabled. The slowest node sets the pace of a collective. The peer-memory module is missing on that node, or it has other hardware.",
        hosts_of(&without).join(", "),
        with.into_iter().collect::<Vec<_>>().join(", ")
    );
    finding.evidence.extend(on.first().map(Hit::evidence));
    finding.fixes = vec![module()];
    Some(finding)
}

/// A level was set so that it is used, and the HCA says no.
fn asked(ask: Ask<'_>) -> Option<Finding> {
    let setting = wish(ask)?;
    let hits = states(ask, "Disabled");
    if hits.is_empty() || !states(ask, "Enabled").is_empty() {
        return None;
    }
    let mut finding = finding(&hits, Severity::Warning, Confidence::Likely, "GPU Direct RDMA was asked for, and the HCA has no access to GPU memory");
    finding.why = format!(
        "{}={} was set by the user, but the HCAs report GPU Direct RDMA as disabled: neither nvidia-peermem nor DMA-BUF is usable. GeForce cards and DGX Spark never have it; there the setting has no effect.",
        setting.name, setting.value
    );
    finding.evidence.push(setting.evidence());
    finding.fixes = vec![module()];
    Some(finding)
}

/// It is merely not there: worth knowing. Where nothing shows that the job ever worked, it is the one thing in the
/// log that is worth a look.
fn absent(ask: Ask<'_>) -> Option<Finding> {
    let none = states(ask, "Enabled").is_empty();
    let hits = if none { states(ask, "Disabled") } else { Vec::new() };
    let far = ask.hits("gdr.disabled");
    if !ask.multi_node_or_unknown() || (hits.is_empty() && far.is_empty()) {
        return None;
    }
    let severity = if !hits.is_empty() && !works(ask) && !finished(ask) && !consumer(ask) && quiet(ask) { Severity::Warning } else { Severity::Info };
    let shown = if hits.is_empty() { &far } else { &hits };
    let mut finding = finding(shown, severity, Confidence::Possible, "data between nodes goes without GPU Direct RDMA");
    finding.why = if hits.is_empty() {
        "The GPU and the HCA are further apart than the level in force allows. On many machines that is right, since the path through host memory is faster there.".to_owned()
    } else {
        "The HCAs report GPU Direct RDMA as disabled: neither nvidia-peermem nor DMA-BUF is usable on this node. Data between nodes goes through host memory. GeForce cards and DGX Spark never have it; on data centre GPUs it costs bandwidth.".to_owned()
    };
    finding.fixes = vec![module()];
    Some(finding)
}

/// GPUs that never have GPU Direct RDMA.
fn consumer(ask: Ask<'_>) -> bool {
    ask.any_of(&["gpu.name", "nccl_tests.rank"]).iter().any(|h| h.get("name").is_some_and(|n| n.contains("GeForce") || n.contains("RTX") || n.contains("GB10")))
}

/// Some rank came through its initialisation, which needs all others.
fn finished(ask: Ask<'_>) -> bool {
    ask.procs().any(|(_, p)| p.log.comms.iter().any(|c| c.complete.is_some()))
}

/// No rank warns of anything.
fn quiet(ask: Ask<'_>) -> bool {
    ask.procs().all(|(_, p)| p.log.ledger.iter().all(|e| e.first.level.is_none_or(|l| l == crate::digest::SampleLevel::Info)))
}

fn finding(hits: &[Hit<'_>], severity: Severity, confidence: Confidence, what: &str) -> Finding {
    let ranks = ranks_of(hits);
    let hosts = hosts_of(hits);
    let who = match (hosts.as_slice(), ranks.is_empty()) {
        ([host], _) => format!("{host}: "),
        (_, false) => format!("{}: ", ranks_text(&ranks)),
        _ => String::new(),
    };
    let mut finding = Finding::new(RULE.cause.id, severity, confidence, format!("{who}{what}"));
    finding.ranks = ranks;
    finding.hosts = hosts;
    finding.evidence = hits.iter().take(4).map(Hit::evidence).collect::<Vec<Evidence>>();
    finding.avoid = vec!["NCCL_NET_GDR_LEVEL=SYS without a working module: registration fails with Bad address, or the path gets slower.".to_owned()];
    finding.verify = vec!["The new log says `GPU Direct RDMA Enabled for HCA …` and the channel lines end in `/GDRDMA`.".to_owned()];
    finding
}

fn module() -> Fix {
    Fix {
        title: "Load the peer-memory module, or use a kernel and driver with DMA-BUF".to_owned(),
        when: "The GPUs support it (data centre cards).".to_owned(),
        commands: vec![
            "lsmod | grep -e nvidia_peermem; sudo modprobe nvidia-peermem".to_owned(),
            "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf   # permanently".to_owned(),
        ],
        needs: "root".to_owned(),
        cost: "None.".to_owned(),
        undo: "sudo rmmod nvidia-peermem".to_owned(),
    }
}

fn off() -> Fix {
    Fix {
        title: "Run without GPU Direct until it is mended".to_owned(),
        when: "The job has to run now; it also shows whether GPU Direct is the reason.".to_owned(),
        commands: vec!["export NCCL_NET_GDR_LEVEL=LOC".to_owned()],
        needs: "nothing".to_owned(),
        cost: "Data between nodes goes through host memory.".to_owned(),
        undo: "unset NCCL_NET_GDR_LEVEL".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn merely_absent_beside_a_missing_log_is_a_remark() {
        let log = "alpha:1:2 [0] NCCL INFO Using network IB\nalpha:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\nalpha:1:2 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xa - Init COMPLETE\n";
        let list = crate::analysis::analyze_texts(&[("rank0.log", log)]).findings;
        assert!(list.iter().filter(|f| f.id == "gdr-disabled").all(|f| f.severity == crate::rules::Severity::Info));
    }

    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Finding, Severity};

    fn found(logs: &[(&str, &str)]) -> Option<Finding> {
        analyze_texts(logs).findings.into_iter().find(|f| f.id == "gdr-disabled")
    }

    const IB: &str = "hosta:5:5 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\nhosta:5:5 [0] NCCL INFO Using network IB\n";
    const COMPLETE: &str = "hosta:5:5 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x99 - Init COMPLETE\nhostb:5:5 [0] NCCL INFO ncclCommInitRank comm 0x20 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x99 - Init COMPLETE\n";

    #[test]
    fn a_level_that_forbids_it_is_named() {
        let text = format!(
            "{IB}hosta:5:5 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\nhosta:5:5 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC\nhosta:5:5 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 17000 / HCA 0 (distance 6 > 0)\n"
        );
        let finding = found(&[("rank0.log", &text)]).expect("level");
        assert_eq!((finding.severity, finding.confidence), (Severity::Warning, Confidence::Certain));
        assert!(finding.title.contains("NCCL_NET_GDR_LEVEL=LOC"), "{}", finding.title);
    }

    #[test]
    fn a_bad_address_on_a_direct_channel_is_an_error() {
        let text = format!(
            "{IB}hosta:5:5 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 17000 / HCA 0 (distance 4 <= 5), read 0\nhosta:5:6 [0] misc/ibvwrap.cc:169 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address\n"
        );
        let finding = found(&[("rank0.log", &text)]).expect("registration");
        assert_eq!((finding.severity, finding.confidence), (Severity::Error, Confidence::Likely));
    }

    #[test]
    fn other_refusals_of_a_registration_are_told_apart() {
        let call = |call: &str, error: &str| format!("hosta:5:6 [0] misc/ibvwrap.cc:288 NCCL WARN Call to {call} failed with error {error}\n");
        let f = found(&[("a.log", &call("ibv_reg_dmabuf_mr", "Operation not supported"))]).expect("dmabuf");
        assert_eq!((f.severity, f.confidence), (Severity::Error, Confidence::Likely));
        assert!(f.title.contains("takes no DMA-BUF memory"), "{}", f.title);
        let f = found(&[("a.log", &call("ibv_reg_mr_iova2", "Invalid argument"))]).expect("argument");
        assert_eq!(f.confidence, Confidence::Possible);
        assert!(found(&[("a.log", &call("ibv_reg_mr_iova2", "Cannot allocate memory"))]).is_none());
        let done = "hosta:5:5 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 17000 commId 0x99 - Init COMPLETE\n";
        assert!(found(&[("a.log", &(call("ibv_reg_dmabuf_mr", "Operation not supported") + done))]).is_none());
    }

    #[test]
    fn one_node_without_it_is_a_warning() {
        let a = format!("{IB}hosta:5:5 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n");
        let b = "hostb:5:5 [0] NCCL INFO Using network IB\nhostb:5:5 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n";
        let finding = found(&[("rank0.log", &a), ("rank1.log", b)]).expect("one node");
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.hosts, vec!["hostb".to_owned()]);
    }

    #[test]
    fn merely_absent_is_no_alarm_and_tcp_never_has_it() {
        let text = format!("{IB}hosta:5:5 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n{COMPLETE}");
        assert!(found(&[("rank0.log", &text)]).is_none_or(|f| f.severity == Severity::Info));
        let text = format!("hosta:5:5 [0] NCCL INFO Using network Socket\nhosta:5:5 [0] NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'\n{COMPLETE}");
        assert!(found(&[("rank0.log", &text)]).is_none());
    }
}
