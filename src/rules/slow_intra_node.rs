//! slow-intra-node: GPUs of one machine exchange data through shared memory or the network instead of P2P.

use super::facts;
use super::finding::{Confidence, Evidence, Finding, Severity};
use super::query::{Ask, Hit, SettingHit, ranges};
use super::remedy::{fix, lines, sh};
use super::waiting::{self, Link, Local};
use super::{Cause, Rule};
use crate::digest::{MatrixRow, Table};
use std::collections::BTreeSet;
use std::fmt::Write;

const ID: &str = "slow-intra-node";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause {
        id: ID,
        aliases: &[],
        summary: "GPUs of one machine exchange data through shared memory or the network instead of P2P.",
        explanation: include_str!("slow_intra_node.md"),
    },
    check,
    explains: &[],
    only_alone: false,
};

/// Why P2P is not used.
enum Reason<'a> {
    /// Its user switched it off or narrowed it.
    Setting(SettingHit<'a>),
    /// The driver or the runtime says that the GPUs do not reach each other.
    Refused(Vec<Hit<'a>>),
    /// NCCL found it so by itself.
    Chosen(Vec<Hit<'a>>),
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let local = ask.comms().map(|c| waiting::local(ask, c)).max_by_key(|l| l.shm.len() + l.net.len() + l.p2p.len()).unwrap_or_default();
    let detour = !local.shm.is_empty() || !local.net.is_empty();
    let neighbours = detour || !local.p2p.is_empty() || shares_a_host(ask);
    let Some(reason) = reason(ask, &local, detour, neighbours) else { return Vec::new() };
    let mut finding = report(ask, &reason, local);
    by_facts(ask, &reason, &mut finding);
    by_tree(ask, &reason, &mut finding);
    vec![finding]
}

/// What the tree of the PCIe bridges says of the distance, which is why NCCL takes shared memory.
fn by_tree(ask: Ask<'_>, reason: &Reason<'_>, finding: &mut Finding) {
    let Some(between) = facts::between(ask).filter(|_| matches!(reason, Reason::Chosen(_))) else { return };
    let Some(line) = between.shared.or_else(|| between.bridges.first().copied()) else { return };
    let near = if between.shared.is_some() { ", so the distance is not the reason: see whether the driver offers P2P between them" } else { "" };
    let _ = write!(finding.why, " By `lspci`, the GPUs {}{near}.", facts::joined(&between));
    finding.evidence.push(facts::evidence(ask, &line.at));
}

/// What the hosts' tables between GPUs say of P2P: it decides between a driver that offers none and a choice.
fn by_facts(ask: Ask<'_>, reason: &Reason<'_>, finding: &mut Finding) {
    let rows: Vec<&MatrixRow> = facts::nodes(ask).flat_map(|n| n.facts.rows(Table::P2pRead)).collect();
    let words: BTreeSet<&str> = rows.iter().flat_map(|r| &r.cells).map(|(_, v)| v.as_str()).filter(|v| !matches!(*v, "U" | "X")).collect();
    let Some(row) = rows.iter().find(|r| r.cells.iter().any(|(_, v)| words.first() == Some(&v.as_str()))) else { return };
    let Some(word) = words.first().filter(|_| words.len() == 1) else { return };
    let (offered, meaning) = match *word {
        "OK" => (true, "the driver offers P2P between all GPUs"),
        "CNS" => (false, "the chipset is not one that the driver allows P2P on, or a virtual machine hides it"),
        "GNS" => (false, "these GPUs have no P2P in this driver"),
        "TNS" => (false, "the way between the GPUs is not one that P2P works over"),
        "DR" => (false, "P2P is switched off by a setting of the driver"),
        "NS" => (false, "P2P is not supported between these GPUs"),
        _ => return,
    };
    let _ = write!(finding.why, " By the host's facts (`nvidia-smi topo -p2p r` says {word}), {meaning}.");
    finding.evidence.insert(0, facts::evidence(ask, &row.at));
    finding.confidence = match (reason, offered) {
        // A setting is the only thing in the way; or nothing but the driver is.
        (Reason::Setting(_), true) | (Reason::Refused(_) | Reason::Chosen(_), false) => Confidence::Certain,
        _ => finding.confidence,
    };
    if !offered && matches!(reason, Reason::Chosen(_)) {
        finding.title = finding.title.replace(" instead of P2P", &format!(": the driver offers no P2P between them ({word})"));
        finding.fixes.retain(|f| !f.title.starts_with("Let NCCL use P2P"));
        finding.fixes.push(fix(
            "Nothing to set: shared memory is the best path here",
            "The table says that P2P is not offered.",
            &["nvidia-smi topo -p2p r"],
            "nothing",
            "none",
            "",
        ));
    }
}

/// Several ranks of the job run on one host.
fn shares_a_host(ask: Ask<'_>) -> bool {
    let local = ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| l.local_ranks.is_some_and(|n| n > 1));
    let one_node = ask.job.world().is_some_and(|c| c.nranks.is_some_and(|n| n > 1) && c.nnodes == Some(1));
    let one_process = ask.procs().any(|(_, p)| p.log.devices.len() > 1);
    local || one_node || one_process || ask.job.hosts.iter().any(|h| h.ranks.len() > 1)
}

fn reason<'a>(ask: Ask<'a>, local: &Local, detour: bool, neighbours: bool) -> Option<Reason<'a>> {
    let refused = ask.any_of(&["p2p.disabled", "p2p.not_enabled", "p2p.disabled_nvlink"]);
    if !refused.is_empty() {
        return Some(Reason::Refused(refused));
    }
    if let Some(setting) = waiting::p2p_switched_off(ask)
        && neighbours
        && (detour || local.p2p.is_empty())
    {
        return Some(Reason::Setting(setting));
    }
    if let Some(setting) = ask.setting_where("NCCL_P2P_LEVEL", |v| matches!(v, "NVL" | "PIX" | "1" | "PXB" | "2"))
        && detour
    {
        return Some(Reason::Setting(setting));
    }
    let custom: Vec<Hit<'a>> = ask.hits("vllm.custom_ar_off").into_iter().filter(|h| h.text().contains("lacks GPU P2P capability")).collect();
    if !custom.is_empty() {
        return Some(Reason::Refused(custom));
    }
    if waiting::failed(ask) {
        // What failed matters; how fast it would have been does not.
        return None;
    }
    if !detour && (ask.multi_node() || ask.job.world().is_some_and(|c| c.nnodes.is_some_and(|n| n > 1))) {
        // Over several nodes the line counts remote pairs too.
        return None;
    }
    let kind: Vec<Hit<'a>> = ask.hits("p2p.type").into_iter().filter(|h| h.num("direct") == Some(0)).collect();
    (detour || !kind.is_empty()).then_some(Reason::Chosen(kind))
}

fn pairs(links: &[Link]) -> String {
    let set: BTreeSet<(u32, u32)> = links.iter().map(|l| (l.from.min(l.to), l.from.max(l.to))).collect();
    let shown: Vec<String> = set.iter().take(4).map(|(a, b)| format!("{a}-{b}")).collect();
    format!("{}{}", shown.join(", "), if set.len() > 4 { ", …" } else { "" })
}

fn report(ask: Ask<'_>, reason: &Reason<'_>, local: Local) -> Finding {
    let through = if let Some(l) = local.net.first() { l.via.split('/').take(2).collect::<Vec<_>>().join("/") } else { "shared memory".to_owned() };
    let mut links = local.net;
    links.extend(local.shm);
    let mixed = !local.p2p.is_empty() && !links.is_empty();
    let who = if links.is_empty() { "GPUs of one host".to_owned() } else { format!("local ranks {}", pairs(&links)) };
    let confidence = match reason {
        Reason::Chosen(_) => Confidence::Possible,
        _ => Confidence::Likely,
    };
    let title = match reason {
        Reason::Setting(s) => format!("{who} talk over {through}: P2P is off because {}={}", s.name, s.value),
        Reason::Refused(_) => format!("{who} talk over {through}: the driver offers no P2P between them"),
        Reason::Chosen(_) => format!("{who} talk over {through} instead of P2P"),
    };
    let mut finding = Finding::new(ID, Severity::Warning, confidence, title);
    finding.why = why(reason, &through, mixed);
    finding.ranks = links.iter().flat_map(|l| [l.from, l.to]).collect();
    finding.hosts = ask.hosts().into_iter().map(str::to_owned).collect();
    let mut proof: Vec<Evidence> = match reason {
        Reason::Setting(s) => vec![s.evidence()],
        Reason::Refused(hits) | Reason::Chosen(hits) => hits.iter().take(3).map(Hit::evidence).collect(),
    };
    proof.extend(links.into_iter().take(3).map(|l| l.line));
    finding.evidence = proof;
    advise(reason, &mut finding);
    finding
}

fn why(reason: &Reason<'_>, through: &str, mixed: bool) -> String {
    let what = match reason {
        Reason::Setting(s) if s.name == "NCCL_P2P_LEVEL" && s.value == "LOC" => {
            "NCCL_P2P_LEVEL=LOC is in force, which is also how older versions print NCCL_P2P_DISABLE=1: P2P is off by choice.".to_owned()
        }
        Reason::Setting(s) => format!("{}={} is in force: somebody chose it, mostly as the workaround of an older problem.", s.name, s.value),
        Reason::Refused(hits) => {
            let list: Vec<u32> = hits.iter().filter_map(|h| h.num("dev").and_then(|d| u32::try_from(d).ok())).collect();
            let which = if list.is_empty() { String::new() } else { format!(" (devices {})", ranges(&list)) };
            format!("The driver or the CUDA runtime says that these GPUs cannot reach each other directly{which}. GeForce cards and many virtual machines never can; elsewhere the chipset, the IOMMU or a container setting forbids it.")
        }
        Reason::Chosen(_) => "NCCL chose this by itself, mostly because the GPUs hang on different sockets or root complexes (PHB or SYS in `nvidia-smi topo -m`), where it takes shared memory for the better path.".to_owned(),
    };
    let rest = if mixed { " Other pairs do use P2P, so the slow ones set the pace." } else { "" };
    format!(
        "{what} Data between GPUs of one host goes through {through}, which works but costs bandwidth.{rest} If the job stands still all the same, IOMMU and ACS are worth a look."
    )
}

fn advise(reason: &Reason<'_>, finding: &mut Finding) {
    match reason {
        Reason::Setting(s) => {
            let unset = format!("unset {}", s.name);
            finding.fixes.push(fix(
                "Take the setting out and see whether P2P works",
                "Unless P2P is known to hang on this machine.",
                &[&unset, "nvidia-smi topo -p2p r"],
                "nothing",
                "none",
                &format!("export {}={}", s.name, sh(s.value)),
            ));
        }
        Reason::Refused(_) => finding.fixes.push(fix(
            "See whether this machine can have P2P at all",
            "The cards are data center or workstation models.",
            &["nvidia-smi topo -p2p r", "nvidia-smi topo -m", "cat /proc/cmdline"],
            "nothing",
            "none",
            "",
        )),
        Reason::Chosen(_) => finding.fixes.push(fix(
            "Let NCCL use P2P over a longer way, and measure",
            "`nvidia-smi topo -p2p r` says OK for the pair.",
            &["nvidia-smi topo -m", "export NCCL_P2P_LEVEL=SYS", "all_reduce_perf -b 64M -e 256M -g 2   # once with and once without"],
            "nothing",
            "may be slower, and may hang where the IOMMU or ACS is in the way",
            "unset NCCL_P2P_LEVEL",
        )),
    }
    finding.avoid = lines(&["NCCL_SHM_DISABLE=1 beside it: local traffic then goes over the network and is slower still."]);
    finding.verify = lines(&["The new log shows `via P2P/…` between the local ranks.", "nvidia-smi topo -p2p r   # OK for every pair"]);
}

#[cfg(test)]
mod tests {
    use super::super::{Analysis, Severity};
    use crate::analysis::analyze_texts;

    fn rank(r: u32, setting: &str, via: &str) -> String {
        let peer = 1 - r;
        format!(
            "ws1:10{r}:10{r} [{r}] NCCL INFO Bootstrap : Using eth0:10.0.0.5<0>\nws1:10{r}:10{r} [{r}] NCCL INFO Using network Socket\n{setting}\
             ws1:10{r}:10{r} [{r}] NCCL INFO ncclCommInitRank comm 0x5a{r} rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {}1000 commId 0xabc1 - Init START\n\
             ws1:10{r}:10{r} [{r}] NCCL INFO comm 0x5a{r} rank {r} nRanks 2 nNodes 1 localRanks 2 localRank {r} MNNVL 0\n\
             ws1:10{r}:10{r} [{r}] NCCL INFO Channel 00{} : {r}[{r}] -> {peer}[{peer}] via {via}\n\
             ws1:10{r}:10{r} [{r}] NCCL INFO Connected all rings\n\
             ws1:10{r}:10{r} [{r}] NCCL INFO ncclCommInitRank comm 0x5a{r} rank {r} nranks 2 cudaDev {r} nvmlDev {r} busId {}1000 commId 0xabc1 - Init COMPLETE\n\
             ws1:10{r}:10{r} [{r}] NCCL INFO comm 0x5a{r} rank {r} nranks 2 cudaDev {r} busId {}1000 - Destroy COMPLETE\n",
            r + 2,
            if via.starts_with("SHM") { "" } else { "/0" },
            r + 2,
            r + 2
        )
    }

    fn run(setting: &str, via: &str) -> Analysis {
        let set = |r: u32| if setting.is_empty() { String::new() } else { format!("ws1:10{r}:10{r} [{r}] NCCL INFO {setting}\n") };
        analyze_texts(&[("rank0.log", &rank(0, &set(0), via)), ("rank1.log", &rank(1, &set(1), via))])
    }

    #[test]
    fn a_setting_is_named() {
        let a = run("NCCL_P2P_DISABLE set by environment to 1.", "SHM/direct/direct");
        let f = a.findings.iter().find(|f| f.id == super::ID).expect("slow");
        assert_eq!((f.severity, f.confidence), (Severity::Warning, super::Confidence::Likely));
        assert!(f.title.contains("NCCL_P2P_DISABLE=1"), "{}", f.title);
        assert_eq!(f.ranks, [0, 1]);
        assert!(run("NCCL_P2P_LEVEL set by environment to LOC", "SHM/direct/direct").findings.iter().any(|f| f.why.contains("older versions")));
    }

    #[test]
    fn the_drivers_word_is_likely_and_nccls_choice_possible() {
        let a = run("P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.", "SHM/direct/direct");
        assert!(a.findings.iter().any(|f| f.id == super::ID && f.confidence == super::Confidence::Likely));
        let a = run("", "SHM/direct/direct");
        assert!(a.findings.iter().any(|f| f.id == super::ID && f.confidence == super::Confidence::Possible));
    }

    #[test]
    fn the_tree_of_bridges_tells_the_distance() {
        let tree = |lines: &str| {
            let a = analyze_texts(&[("rank0.log", &rank(0, "", "SHM/direct/direct")), ("rank1.log", &rank(1, "", "SHM/direct/direct")), ("host.txt", lines)]);
            a.findings.into_iter().find(|f| f.id == super::ID).expect("slow")
        };
        let far = tree("-[0000:00]-+-01.0-[21]----00.0\n           \\-03.0-[31]----00.0\n");
        assert!(far.why.contains("share no PCIe switch"), "{}", far.why);
        let near = tree("-[0000:00]---01.0-[20-31]----00.0-[21-31]--+-00.0-[21]----00.0\n                                           \\-01.0-[31]----00.0\n");
        assert!(near.why.contains("share the PCIe switch at 20:00.0, so the distance is not the reason"), "{}", near.why);
        assert!(near.evidence.iter().any(|e| e.file == "host.txt"));
    }

    #[test]
    fn p2p_is_silent() {
        for setting in ["", "NCCL_P2P_LEVEL set by environment to SYS", "NCCL_P2P_DISABLE set by environment to 0."] {
            assert!(run(setting, "P2P/IPC").findings.iter().all(|f| f.id != super::ID), "{setting}");
        }
    }
}
