//! Walks the tree by evidence: what decided each branch, and where the evidence stopped.

use super::{Branch, LEAVES, Leaf, NODES, Node, Probe, ROOT, leaf_of, node, path_to};
use crate::event::Library;
use crate::rules::finding::{Evidence, Finding, Verdict};
use crate::rules::query::{Ask, Hit, evidence};
use crate::rules::{RULES, network, waiting};
use serde::Serialize;

/// One question on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Id of the question.
    pub node: &'static str,
    /// The question.
    pub question: &'static str,
    /// The answer that was taken.
    pub answer: &'static str,
    /// Where it leads.
    pub next: &'static str,
    /// The line that decided it; null if the log does not decide it.
    pub evidence: Option<Evidence>,
    /// Where the log does not decide it: the read-only commands that do.
    pub probes: &'static [Probe],
    /// Where the log does not decide it: what each outcome means.
    pub outcomes: &'static [Branch],
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// At a leaf: a founding cause was found.
    Leaf,
    /// At a question that the logs do not answer.
    Open,
    /// At a question none of whose answers fits: the evidence speaks against all of them.
    Clear,
}

/// The walk over a whole analysis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Walk {
    /// What was decided, from the root on.
    pub decisions: Vec<Decision>,
    /// How it ended.
    pub end: End,
    /// Id of the leaf or question where it ended.
    pub at: &'static str,
    /// Why it ended there.
    pub why: String,
}

impl Decision {
    fn new(node: &'static Node, branch: &'static Branch, evidence: Option<Evidence>) -> Self {
        let open = evidence.is_none();
        Self {
            node: node.id,
            question: node.question,
            answer: branch.answer,
            next: branch.next,
            evidence,
            probes: if open { node.probes } else { &[] },
            outcomes: if open { node.branches } else { &[] },
        }
    }
}

impl Walk {
    /// A walk that was not begun.
    pub fn none() -> Self {
        Self { decisions: Vec::new(), end: End::Open, at: ROOT, why: "Nothing was read.".to_owned() }
    }
}

/// Tells every founding finding what decided the branches of its path.
pub fn decide(ask: Ask<'_>, findings: &mut [Finding]) {
    for finding in findings {
        let Some(leaf) = leaf_of(finding.id) else { continue };
        finding.decisions = decisions(ask, finding, leaf);
        finding.path = finding.decisions.iter().map(|d| d.node).chain([leaf.id]).collect();
    }
}

fn decisions(ask: Ask<'_>, finding: &Finding, leaf: &Leaf) -> Vec<Decision> {
    let step = |(node, branch): (&'static Node, &'static Branch)| {
        let line = match (node.id, branch.next) {
            (ROOT, next) => topology(ask).filter(|(to, _)| *to == next).map(|(_, line)| line),
            ("q-p2p-nvidia-or-amd-r9700", _) => vendor(ask).filter(|(leaf, _)| *leaf == branch.next).map(|(_, line)| line),
            _ => telling(finding),
        };
        Decision::new(node, branch, line)
    };
    path_to(leaf.id).into_iter().map(step).collect()
}

/// The line of a finding that shows the transport, else its first proof.
fn telling(finding: &Finding) -> Option<Evidence> {
    const SIGNS: [&str; 3] = ["Using network Socket", "via NET/Socket", "NET/Socket : Using"];
    let shows = |e: &&Evidence| SIGNS.iter().any(|s| e.text.contains(s));
    let line = if finding.id == "tcp-fallback" { finding.evidence.iter().find(shows) } else { None };
    line.or(finding.evidence.first()).cloned()
}

/// Several nodes or one: the next question and the line that says so.
pub fn topology(ask: Ask<'_>) -> Option<(&'static str, Evidence)> {
    const CLUSTER: &str = "q-rocev2-socket-or-qp-error";
    const SINGLE: &str = "q-p2p-nvidia-or-amd-r9700";
    if let Some(comm) = ask.spanning().into_iter().next() {
        let channel = ask.views(comm).flat_map(|(m, log)| log.channels.iter().map(move |c| (m, c))).find(|(_, c)| !c.net.is_empty());
        if let Some((m, c)) = channel {
            return Some((CLUSTER, evidence(ask.job, m.rank, &c.first)));
        }
        // The first rank whose host is another than the first one's.
        let home = comm.members.first().map(|m| network::host_of(ask, m.proc));
        let line = ask.views(comm).find(|(m, _)| Some(network::host_of(ask, m.proc)) != home).or_else(|| ask.views(comm).next());
        let sample = line.and_then(|(m, log)| Some((m, log.start.as_ref().or(log.complete.as_ref()).or(log.first.as_ref())?)));
        return sample.map(|(m, s)| (CLUSTER, evidence(ask.job, m.rank, s)));
    }
    let world = ask.job.world()?;
    if ask.multi_node() || !waiting::is_whole(world) || world.nranks.is_none_or(|n| n < 2) {
        return None;
    }
    let (m, log) = ask.views(world).last()?;
    let sample = log.complete.as_ref().or(log.start.as_ref()).or(log.first.as_ref())?;
    Some((SINGLE, evidence(ask.job, m.rank, sample)))
}

/// NVIDIA or AMD: the leaf and the line that says so.
fn vendor(ask: Ask<'_>) -> Option<(&'static str, Evidence)> {
    const NVIDIA: &str = "sol-pcie-iommu-pt-and-acs-p2p";
    const AMD: &str = "sol-multi-r9700-rccl-sdma-tuning";
    let own = ask.hits("init.version");
    let line = |kind: &str| ask.under(kind).first().map(Hit::evidence);
    match ask.job.library {
        Some(Library::Rccl) => own.first().map(Hit::evidence).or_else(|| line("rocm.")).or_else(|| line("kernel.amdgpu")).map(|e| (AMD, e)),
        Some(Library::Nccl) => own.first().or(ask.hits("init.driver").first()).map(|h| (NVIDIA, h.evidence())),
        None => line("rocm.").or_else(|| line("kernel.amdgpu")).map(|e| (AMD, e)),
    }
}

/// Walks as far as the evidence leads.
pub fn walk(ask: Ask<'_>, findings: &[Finding], verdict: Verdict) -> Walk {
    // A founding cause that was found ends the walk at its leaf, even where a branch before it was not decided.
    let founding = findings.iter().filter(|f| f.is_root()).find_map(|f| Some((f, leaf_of(f.id)?)));
    let founding = founding.or_else(|| findings.iter().find_map(|f| Some((f, leaf_of(f.id)?))));
    if let Some((finding, leaf)) = founding {
        return Walk { decisions: finding.decisions.clone(), end: End::Leaf, at: leaf.id, why: format!("{}: {}.", finding.id, finding.title.trim_end_matches('.')) };
    }
    let Some((next, line)) = topology(ask) else {
        let why = "No line shows how many nodes take part: a communicator's hosts, its nNodes or a channel over NET would.";
        return Walk { decisions: Vec::new(), end: End::Open, at: ROOT, why: why.to_owned() };
    };
    let decided = NODES.iter().find(|n| n.id == ROOT).and_then(|n| Some((n, n.branches.iter().find(|b| b.next == next)?)));
    let decisions = decided.map(|(n, b)| Decision::new(n, b, Some(line))).into_iter().collect();
    let (end, why) = stop(ask, findings, verdict, next);
    Walk { decisions, end, at: node(next).map_or(ROOT, |n| n.id), why }
}

/// What the notes of a job that waits say: where the tree is open, and what decides.
pub fn note(walk: &Walk) -> Option<String> {
    let node = node(walk.at).filter(|_| walk.end == End::Open)?;
    let commands: Vec<String> = node.probes.iter().map(|p| format!("`{}`", p.command)).collect();
    Some(format!("The decision tree stops at {}; {} decides, and --tree says what each outcome means.", node.id, commands.join(" or ")))
}

/// Why none of a question's answers is taken.
fn stop(ask: Ask<'_>, findings: &[Finding], verdict: Verdict, at: &str) -> (End, String) {
    let causes: Vec<&str> = LEAVES.iter().filter(|l| path_to(l.id).last().is_some_and(|(n, _)| n.id == at)).map(|l| l.cause).collect();
    let leaves = causes.join(" and ");
    // What a leaf here would itself bring about (a timeout, a stall) speaks for no other cause.
    let symptom = |id: &str| RULES.iter().any(|r| causes.contains(&r.cause.id) && r.explains.contains(&id));
    if let Some(other) = findings.iter().find(|f| f.is_root() && !symptom(f.id)) {
        return (End::Clear, format!("{} explains these logs, and nothing in them points to {leaves}.", other.id));
    }
    if verdict == Verdict::Healthy || waiting::progressed(ask) {
        return (End::Clear, format!("The job works as far as the logs show; nothing points to {leaves}."));
    }
    if at == "q-rocev2-socket-or-qp-error" && ask.job.nets.is_empty() {
        return (End::Open, "No line names the network that the data takes; NCCL_DEBUG=INFO on every rank prints it.".to_owned());
    }
    (End::Open, "Nothing in the logs decides it: no collective is shown to have finished, and no line shows that one fails.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn start(host: &str, rank: u32, size: u32) -> String {
        format!("{host}:{}:{} [0] NCCL INFO comm 0x5{rank}a0 rank {rank} nranks {size} cudaDev {rank} busId {}000 commId 0x1f - Init START\n", 40 + rank, 50 + rank, rank + 1)
    }

    #[test]
    fn without_a_communicator_the_root_is_open() {
        let walk = analyze_texts(&[("a.log", "node1:4:5 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\n")]).walk;
        assert_eq!((walk.end, walk.at, walk.decisions.len()), (End::Open, ROOT, 0));
    }

    #[test]
    fn two_hosts_lead_to_the_fabric() {
        let walk = analyze_texts(&[("a.log", &start("node1", 0, 2)), ("b.log", &start("node2", 1, 2))]).walk;
        assert_eq!((walk.end, walk.at), (End::Open, "q-rocev2-socket-or-qp-error"), "{walk:?}");
        let line = walk.decisions[0].evidence.as_ref().unwrap();
        assert_eq!((line.file.as_str(), line.line), ("b.log", 1));
    }

    #[test]
    fn one_host_leads_to_its_gpus() {
        let walk = analyze_texts(&[("a.log", &(start("node1", 0, 2) + &start("node1", 1, 2)))]).walk;
        assert_eq!((walk.end, walk.at), (End::Open, "q-p2p-nvidia-or-amd-r9700"), "{walk:?}");
    }

    #[test]
    fn a_rank_without_a_log_leaves_the_root_open() {
        let walk = analyze_texts(&[("a.log", &start("node1", 0, 2))]).walk;
        assert_eq!((walk.end, walk.at), (End::Open, ROOT));
    }

    #[test]
    fn a_founding_finding_tells_what_decided_its_path() {
        let socket = |host: &str, rank: u32| {
            let head = format!("{host}:{}:{} [0] NCCL INFO", 40 + rank, 50 + rank);
            format!("{head} NET/IB : No device found.\n{head} NET/Socket : Using [0]eth0:10.0.0.{rank}<0>\n{head} Using network Socket\n{}", start(host, rank, 2))
        };
        let analysis = analyze_texts(&[("a.log", &socket("node1", 0)), ("b.log", &socket("node2", 1))]);
        let finding = analysis.findings.iter().find(|f| f.id == "tcp-fallback").unwrap();
        assert_eq!(finding.path, ["q-cluster-or-single-host-p2p", "q-rocev2-socket-or-qp-error", "sol-connectx7-rocev2-hca-binding"]);
        let lines: Vec<&str> = finding.decisions.iter().map(|d| d.evidence.as_ref().unwrap().text.as_str()).collect();
        assert!(lines[0].contains("Init START") && lines[1].contains("Using network Socket"), "{lines:?}");
        assert_eq!((analysis.walk.end, analysis.walk.at), (End::Leaf, "sol-connectx7-rocev2-hca-binding"));
    }

    #[test]
    fn what_the_log_does_not_decide_names_its_probes() {
        let watchdog = |rank: u32| {
            format!(
                "[rank{rank}]:[E1130 12:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
            )
        };
        let analysis = analyze_texts(&[("a.log", &(watchdog(0) + &watchdog(1)))]);
        if let Some(finding) = analysis.findings.iter().find(|f| f.id == "p2p-iommu-acs-hang") {
            assert!(finding.decisions.iter().all(|d| d.evidence.is_none() && !d.probes.is_empty() && d.outcomes.len() == 2), "{:?}", finding.decisions);
        } else {
            panic!("{:?}", analysis.findings);
        }
    }
}
