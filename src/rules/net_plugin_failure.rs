//! net-plugin-failure: A wanted network plugin failed.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::network;
use super::query::{Ask, Hit, hosts_of, ranks_of};
use super::{Cause, Rule};
use crate::digest::SampleLevel;

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "net-plugin-failure", aliases: &[], summary: "A wanted network plugin failed.", explanation: include_str!("net_plugin_failure.md") },
    check,
    explains: &["tcp-fallback", "peer-crash", "bootstrap-unreachable", "missing-rank", "collective-timeout", "stall", "gdr-disabled"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    merging(ask)
        .or_else(|| transfer(ask))
        .or_else(|| in_use(ask))
        .or_else(|| ofi(ask))
        .or_else(|| load(ask))
        .or_else(|| vendor(ask))
        .or_else(|| none_left(ask))
        .into_iter()
        .collect()
}

fn of_hits(severity: Severity, confidence: Confidence, title: String, why: String, hits: &[Hit<'_>]) -> Finding {
    let mut f = Finding::new(RULE.cause.id, severity, confidence, title);
    f.why = why;
    f.ranks = ranks_of(hits);
    f.hosts = hosts_of(hits);
    f.evidence = hits.iter().take(5).map(Hit::evidence).collect();
    f.verify = vec!["`Using network` names the plugin's network on every rank, and channel lines say `via NET/` with that name.".to_owned()];
    f
}

/// A network other than TCP is in use all the same.
fn goes_on(ask: Ask<'_>) -> bool {
    !ask.has("net.none") && ask.job.nets.iter().any(|n| !network::is_socket(n))
}

fn fallen_back(ask: Ask<'_>) -> bool {
    ask.job.nets.iter().any(|n| network::is_socket(n))
}

/// The built-in IB plugin asks for a virtual NIC that it did not make.
fn merging(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("net.nic_properties");
    hits.first()?;
    let why = "The library asked its own IB plugin for a merged (virtual) NIC beyond those that it made. That is a fault in how NICs are merged for a further communicator, not in the network; the communicators before it worked.".to_owned();
    let mut f = of_hits(Severity::Error, Confidence::Certain, "NIC merging fails: a virtual NIC is asked for that does not exist".to_owned(), why, &hits);
    f.fixes = vec![
        Fix {
            title: "Switch NIC merging off".to_owned(),
            when: "Until the library is updated.".to_owned(),
            commands: vec!["export NCCL_IB_MERGE_NICS=0".to_owned(), "export NCCL_NET_MERGE_LEVEL=LOC".to_owned()],
            needs: "nothing".to_owned(),
            cost: "Ports of one card are used one by one.".to_owned(),
            undo: "unset NCCL_IB_MERGE_NICS NCCL_NET_MERGE_LEVEL".to_owned(),
        },
        Fix {
            title: "Update NCCL".to_owned(),
            when: "A later version is possible.".to_owned(),
            commands: vec!["pip install -U nvidia-nccl-cu12".to_owned()],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
    ];
    Some(f)
}

/// A transfer over OFI failed.
fn transfer(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("plugin.ofi_error").into_iter().filter(|h| h.text().contains("completed with error")).collect();
    let first = hits.first()?;
    let code = first.get("code").unwrap_or("?");
    let why = format!(
        "A transfer over libfabric ended with the provider's code {code}. The words behind it are errno texts for a number that is none, and mean nothing. On EFA the most frequent reason is a security group that does not let its own members through in both directions; a peer that ended is the other."
    );
    let mut f = of_hits(Severity::Error, Confidence::Likely, format!("A transfer over OFI failed with RC {code}"), why, &hits);
    f.fixes = vec![
        Fix {
            title: "Allow all traffic inside the security group, in and out".to_owned(),
            when: "The instances use EFA.".to_owned(),
            commands: vec!["aws ec2 describe-security-groups --group-ids <group>   # a rule for all protocols with the group itself as source and as target".to_owned()],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
        pingpong(),
    ];
    Some(f)
}

fn pingpong() -> Fix {
    Fix {
        title: "Test the fabric without NCCL".to_owned(),
        when: "To tell the fabric from the plugin.".to_owned(),
        commands: vec!["fi_info -p efa".to_owned(), "fi_pingpong -p efa   # on one node; the same with that node's address on the other".to_owned()],
        needs: "nothing".to_owned(),
        ..Fix::default()
    }
}

/// The OFI plugin is the network in use, and a call fails before the job works.
fn in_use(ask: Ask<'_>) -> Option<Finding> {
    let chosen = !ask.job.nets.is_empty() && ask.job.nets.iter().all(|n| n.contains("Libfabric") || n.contains("OFI"));
    let chosen = chosen || (ask.job.nets.is_empty() && ask.has("plugin.ofi_provider"));
    if !chosen || super::verdict::works(ask) {
        return None;
    }
    let mut hits = ask.hits("plugin.ofi_error");
    hits.retain(|h| h.entry.first.level != Some(SampleLevel::Info));
    // The plugin has some hundred warnings; those that no row describes are quoted.
    hits.extend(ask.hits("warn.unknown").into_iter().filter(|h| h.text().contains("NET/OFI ")));
    let first = *hits.first()?;
    let quoted = || first.text().split_once("NET/OFI ").map_or("no text", |(_, t)| t.trim());
    let error = first.get("error").unwrap_or_else(quoted);
    let what = first.get("code").map_or_else(|| error.to_owned(), |c| format!("RC {c}, {error}"));
    let memory = first.text().contains("egister memory") || first.text().contains("enable MR") || first.text().contains("bind MR");
    let (said, reason) = if memory {
        (
            "cannot register memory",
            "The network card refused the buffer. GPU memory (type 2) needs a driver pair that allows GPU Direct; releases of libfabric before those that fit to NCCL 2.19 refuse it, too, and so does a limit on locked memory.",
        )
    } else {
        (
            "fails while it connects",
            "A libfabric that does not fit to the plugin or to the driver, resources of the card that other processes hold, or a device that the instance has not are the usual reasons; the kernel log and FI_LOG_LEVEL=warn tell them apart.",
        )
    };
    let why = format!("The plugin was chosen and found its provider, but a call of libfabric failed on the way to the first transfer: {what}. {reason}");
    let mut f = of_hits(Severity::Error, Confidence::Likely, format!("The OFI plugin {said}: {what}").chars().take(100).collect(), why, &hits);
    f.fixes = vec![versions(memory), pingpong()];
    f.avoid = vec!["NCCL_NET=Socket: it starts, and all data between nodes goes over TCP.".to_owned()];
    Some(f)
}

fn versions(memory: bool) -> Fix {
    let mut commands = vec![
        "fi_info --version; cat /opt/amazon/efa_installed_packages; modinfo efa | grep ^version   # the same on all nodes, and a set that was released together".to_owned(),
        "FI_LOG_LEVEL=warn NCCL_DEBUG=INFO <program>; sudo dmesg -T | grep -i efa".to_owned(),
    ];
    if memory {
        commands.push("cat /sys/class/infiniband/*/device/p2p; ulimit -l   # the first names NVIDIA where EFA reaches GPU memory".to_owned());
        commands.push("export FI_EFA_SET_CUDA_SYNC_MEMOPS=0   # until an old libfabric is replaced".to_owned());
    }
    Fix {
        title: "Take plugin, libfabric and driver from one release of the EFA installer".to_owned(),
        when: "The image brings a libfabric or a plugin of its own.".to_owned(),
        commands,
        needs: "root".to_owned(),
        ..Fix::default()
    }
}

/// The OFI plugin does not start.
fn ofi(ask: Ask<'_>) -> Option<Finding> {
    let mut hits = ask.any_of(&["plugin.ofi_error", "plugin.ofi_none"]);
    hits.retain(|h| !h.text().contains("completed with error"));
    let first = *hits.iter().find(|h| h.entry.kind == "plugin.ofi_error").or_else(|| hits.first())?;
    // The plugin tries several protocols; where one works, or IB was taken, the earlier failures mean nothing.
    let warned = hits.iter().any(|h| h.entry.first.level != Some(SampleLevel::Info));
    if goes_on(ask) || !(warned || ask.has("net.none")) {
        return None;
    }
    let ended = ask.has("net.none");
    let memory = ask.any_of(&["plugin.ofi_error"]).iter().any(|h| h.text().contains("Cannot allocate memory") || h.num("code") == Some(-12));
    let what = match (first.get("code"), first.entry.kind.as_str()) {
        (Some(code), _) => format!("RC {code}, {}", first.get("error").unwrap_or("no text")),
        (None, "plugin.ofi_none") => "no provider fits".to_owned(),
        (None, _) => first.get("error").unwrap_or("it does not start").chars().take(50).collect(),
    };
    let mut why = "The AWS OFI plugin found no way to the fabric and gave up.".to_owned();
    why.push_str(if ended {
        " No other network was allowed, so the initialisation failed."
    } else if fallen_back(ask) {
        " NCCL went on with TCP, which is much slower between nodes."
    } else {
        ""
    });
    why.push_str(if memory {
        " The HCA refused memory: look at the locked-memory limit (`ulimit -l`)."
    } else {
        " No EFA device in the instance or the container, a missing libfabric provider, or a plugin that does not fit to libfabric are the usual reasons."
    });
    let severity = if ended {
        Severity::Error
    } else if fallen_back(ask) {
        Severity::Warning
    } else {
        Severity::Error
    };
    let mut f = of_hits(severity, Confidence::Certain, format!("The OFI plugin cannot start: {what}"), why, &hits);
    f.fixes = vec![
        Fix {
            title: "Give the job the EFA devices".to_owned(),
            when: "Containers, or instances without EFA interfaces.".to_owned(),
            commands: vec![
                "ls /dev/infiniband; fi_info -p efa".to_owned(),
                "docker run --device=/dev/infiniband --ulimit memlock=-1 --network=host …   # Kubernetes: the resource vpc.amazonaws.com/efa".to_owned(),
            ],
            needs: "root".to_owned(),
            ..Fix::default()
        },
        pingpong(),
        Fix {
            title: "Do without the plugin".to_owned(),
            when: "These nodes have no libfabric network.".to_owned(),
            commands: vec!["export NCCL_NET_PLUGIN=none".to_owned()],
            needs: "nothing".to_owned(),
            undo: "unset NCCL_NET_PLUGIN".to_owned(),
            ..Fix::default()
        },
    ];
    f.avoid = vec!["NCCL_NET=Socket: it starts, and all data between nodes goes over TCP.".to_owned()];
    Some(f)
}

/// A plugin's library is there and does not load, or one that was named is not there.
fn load(ask: Ask<'_>) -> Option<Finding> {
    if goes_on(ask) {
        return None;
    }
    let named = ask.setting_where("NCCL_NET_PLUGIN", |v| !v.is_empty() && !v.eq_ignore_ascii_case("none"));
    let absent = |h: &Hit<'_>| h.get("error").unwrap_or_default().contains("No such file");
    let mut hits: Vec<Hit<'_>> = ask.any_of(&["plugin.load_failed", "plugin.unsupported"]).into_iter().filter(|h| !absent(h)).collect();
    hits.retain(|h| !h.text().contains("TUNER/") && !h.text().contains("PROFILER/") && !h.text().contains("when loading libnccl-tuner"));
    if hits.is_empty() && named.is_some() && !ask.has("plugin.loaded") && !ask.has("plugin.ofi") && !ask.has("plugin.hpcx") {
        hits = ask.any_of(&["plugin.none", "plugin.load_failed"]).into_iter().filter(|h| h.get("what").is_none_or(|w| w == "NET")).collect();
    }
    let first = hits.first()?;
    if !ask.multi_node() && !ask.has("net.none") {
        return None;
    }
    let name = first.get("name").map(str::to_owned).or_else(|| named.as_ref().map(|s| s.value.to_owned())).unwrap_or_else(|| "the plugin".to_owned());
    let error = first.get("error").unwrap_or("not found");
    let ended = ask.has("net.none");
    let why = format!(
        "The network plugin could not be used ({error}). {}",
        if ended { "No other network was allowed." } else { "NCCL goes on with what it has itself, which may be TCP." }
    );
    let severity = if ended { Severity::Error } else { Severity::Warning };
    let mut f = of_hits(severity, Confidence::Likely, format!("The network plugin {name} does not load"), why, &hits);
    f.evidence.extend(named.map(|s| s.evidence()));
    f.fixes = vec![Fix {
        title: "Mend the plugin's library".to_owned(),
        when: "The image and the plugin were built for different systems, or a library that it needs is missing.".to_owned(),
        commands: vec![
            "ldd $(ldconfig -p | awk '/libnccl-net/ {print $NF}')   # 'not found' names what is missing".to_owned(),
            "LD_DEBUG=libs <program> 2>&1 | grep nccl-net".to_owned(),
        ],
        needs: "nothing".to_owned(),
        ..Fix::default()
    }];
    Some(f)
}

/// No network could be initialised, and IB is not what was wanted.
fn none_left(ask: Ask<'_>) -> Option<Finding> {
    let other: Vec<Hit<'_>> = ask.hits("net.not_found").into_iter().filter(|h| !h.get("net").is_some_and(|n| n.starts_with("IB"))).collect();
    if let Some(h) = other.first() {
        let net = h.get("net").unwrap_or("?");
        let why = format!("NCCL_NET asks for the network {net}, and no loaded plugin offers it: the plugin is missing, failed, or calls its network otherwise.");
        let mut f = of_hits(Severity::Error, Confidence::Certain, format!("The network {net} that NCCL_NET asks for is not there"), why, &other);
        f.fixes = vec![choose()];
        return Some(f);
    }
    let hits = ask.hits("net.none");
    let wanted = ask.settings("NCCL_NET").into_iter().find(|s| !s.value.starts_with("IB") && !s.value.eq_ignore_ascii_case("gIB"));
    if let Some(s) = wanted.filter(|_| !hits.is_empty()) {
        let why = format!(
            "NCCL_NET asks for the network {}, which could not be initialised: the plugin that offers it is missing, failed, or calls its network otherwise. No other network is allowed.",
            s.value
        );
        let mut f = of_hits(Severity::Error, Confidence::Certain, format!("The network {} that NCCL_NET asks for is not there", s.value), why, &hits);
        f.evidence.push(s.evidence());
        f.fixes = vec![choose()];
        return Some(f);
    }
    if hits.is_empty() || !ask.any_of(&["ib.no_libibverbs", "ib.no_device", "ib.open_failed"]).is_empty() {
        return None;
    }
    let why = "A certain network was demanded (NCCL_NET, or a plugin that allows no other) and could not be initialised. At this log level the reason is not printed; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET shows which network and what it lacked (an HCA, libibverbs, a plugin).".to_owned();
    let mut f = of_hits(Severity::Error, Confidence::Likely, "No network could be initialised".to_owned(), why, &hits);
    f.fixes = vec![choose()];
    Some(f)
}

fn choose() -> Fix {
    Fix {
        title: "Ask for a network that is there, or for none".to_owned(),
        when: "NCCL_NET or NCCL_NET_PLUGIN is set.".to_owned(),
        commands: vec!["env | grep NCCL_NET; cat /etc/nccl.conf ~/.nccl.conf".to_owned(), "unset NCCL_NET NCCL_NET_PLUGIN".to_owned()],
        needs: "nothing".to_owned(),
        cost: "Without NCCL_NET the job falls back to TCP silently where RDMA is missing.".to_owned(),
        ..Fix::default()
    }
}

/// A vendor's plugin warns in words of its own.
fn vendor(ask: Ask<'_>) -> Option<Finding> {
    let mut hits = ask.hits("plugin.vendor");
    hits.retain(|h| {
        h.entry.first.level == Some(SampleLevel::Warn)
            && !h.get("name").is_some_and(|n| n.starts_with("IB") || n.starts_with("Socket") || n.starts_with("Plugin") || n.starts_with("OFI"))
    });
    let name = hits.first()?.get("name")?;
    if ask.all_complete() {
        return None;
    }
    let why = format!("The plugin {name} reports a failure in its own words; the line says which call. Its vendor's documentation knows them.");
    let confidence = if ask.has("net.none") { Confidence::Likely } else { Confidence::Possible };
    let mut f = of_hits(Severity::Error, confidence, format!("The network plugin {name} reports a failure"), why, &hits);
    f.fixes = vec![choose()];
    Some(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn find(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == "net-plugin-failure")
    }

    #[test]
    fn ofi_without_provider() {
        let log =
            "alpha:1:1 [0] create_plugin:259 NCCL WARN NET/OFI aws-ofi-nccl initialization failed\nalpha:1:1 [0] plugin/net.cc:306 NCCL WARN Failed to initialize any NET plugin\n";
        assert_eq!(find(log).unwrap().severity, Severity::Error);
        let fallen = "alpha:1:1 [0] create:259 NCCL WARN NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument\nalpha:1:1 [0] NCCL INFO Using network Socket\n";
        assert_eq!(find(fallen).unwrap().severity, Severity::Warning);
    }

    #[test]
    fn a_plugin_that_finds_another_way_is_fine() {
        assert!(find("alpha:1:1 [0] create:259 NCCL WARN NET/OFI aws-ofi-nccl initialization failed\nalpha:1:1 [0] NCCL INFO Using network IB\n").is_none());
        assert!(
            find("alpha:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\nalpha:1:1 [0] NCCL INFO Using network Socket\n").is_none()
        );
    }

    #[test]
    fn a_transfer_that_failed() {
        let f = find("alpha:1:1 [5] ofi_process_cq:1039 NCCL WARN NET/OFI Request 0x7f30 completed with error. RC: 20. Error: unknown error. Completed length: 0\n").unwrap();
        assert!(f.title.contains("RC 20"), "{}", f.title);
    }

    #[test]
    fn a_call_that_fails_on_the_way_to_the_first_transfer() {
        let net = "alpha:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)\nalpha:1:1 [0] NCCL INFO Using network AWS Libfabric\n";
        let memory = "alpha:1:2 [0] register_mr_buffers:544 NCCL WARN NET/OFI Unable to register memory (type = 2) for device 0. RC: -22, Error: Invalid argument\n";
        let f = find(&format!("{net}{memory}")).unwrap();
        assert_eq!((f.confidence, f.title.as_str()), (Confidence::Likely, "The OFI plugin cannot register memory: RC -22, Invalid argument"));
        let endpoint = "alpha:1:2 [0] get_ep:969 NCCL WARN NET/OFI Creating new endpoint for domain 0x7f00 failed: Invalid argument\n";
        assert_eq!(find(&format!("{net}{endpoint}")).unwrap().title, "The OFI plugin fails while it connects: Invalid argument");
        let other = "alpha:1:2 [0] rdma.c:5200 NCCL WARN NET/OFI Unable to insert remote address into address vector for device 3.\n";
        assert!(find(&format!("{net}{other}")).unwrap().title.contains("Unable to insert remote address"));
        let done = "alpha:1:1 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0xa - Init COMPLETE\n";
        assert!(find(&format!("{net}{endpoint}{done}")).is_none());
    }

    #[test]
    fn a_transfer_in_the_words_of_later_plugins() {
        let line =
            "alpha:1:1 [5] NCCL WARN NET/OFI Request 0x7f30 (rdma_send) completed with error: err: 113, flags: 1024, prov_errno: 4, strerror: Unresponsive receiver, len: 0\n";
        assert!(find(line).unwrap().title.contains("RC 113"));
    }

    #[test]
    fn virtual_nics() {
        let f = find("alpha:1:1 [0] transport/net_ib.cc:842 NCCL WARN NET/IB : Requested properties for vNic 4, only 4 vNics have been created\n").unwrap();
        assert_eq!(f.confidence, Confidence::Certain);
    }

    #[test]
    fn a_network_that_was_asked_for_is_named_whatever_ib_says() {
        let none = "alpha:1:1 [0] NCCL INFO NET/IB : No device found.\nalpha:1:1 [0] plugin/net.cc:379 NCCL WARN Failed to initialize any NET plugin\n";
        let f = find(&format!("alpha:1:1 [0] NCCL INFO NCCL_NET set by environment to FasTrak\n{none}")).unwrap();
        assert_eq!(f.title, "The network FasTrak that NCCL_NET asks for is not there");
        let f = find(&format!("alpha:1:1 [0] NCCL WARN NET/FasTrak failed to reach the receive daemon\n{none}")).unwrap();
        assert_eq!(f.confidence, Confidence::Likely);
    }

    #[test]
    fn nothing_left_and_no_reason() {
        assert_eq!(find("alpha:1:1 [0] plugin/net.cc:379 NCCL WARN Failed to initialize any NET plugin\n").unwrap().confidence, Confidence::Likely);
    }
}
