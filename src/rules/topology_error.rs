//! topology-error: The topology that the library was given, or found, does not work.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "topology-error";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "The topology that the library was given, or found, does not work.", explanation: include_str!("topology_error.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hits = ask.hits("rocm.topology_path");
    let Some(first) = hits.first() else { return unreadable(ask).into_iter().collect() };
    let links = first.get("links").map_or(String::new(), |n| format!(" with {n} links"));
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Certain, format!("RCCL cannot make sense of the links between the GPUs ({})", ranks_text(&ranks_of(&hits))));
    prove(&mut finding, &hits);
    finding.why = format!(
        "A link from one GPU{links} leads to another one that RCCL does not see from the other side, so it cannot build its topology and the init fails. That happens where only some GPUs of a fully connected set are visible to the job: a partial node, a partition mode, or different *_VISIBLE_DEVICES per process."
    );
    finding.fixes = vec![
        fix(
            "Let every rank see the same whole set of linked GPUs",
            "A scheduler or HIP_VISIBLE_DEVICES gives the job a part of the node.",
            &["rocm-smi --showtopo", "env | grep -e VISIBLE_DEVICES", "ls /sys/class/kfd/kfd/topology/nodes"],
            "nothing",
            "none",
            "",
        ),
        fix(
            "Take a newer RCCL",
            "The set of GPUs is whole and it still fails.",
            &["# newer releases handle partial sets of the same models"],
            "root",
            "none",
            "install the former package",
        ),
    ];
    finding.verify = lines(&["The new log reaches `Init COMPLETE`."]);
    vec![finding]
}

/// The description of the machine, from a file or from the system, is broken or beyond NCCL's limits, and the init fails.
fn unreadable(ask: Ask<'_>) -> Option<Finding> {
    const WORDS: [&str; 17] = [
        "Could not open XML graph file",
        "XML Parse",
        "XML Mismatch",
        "XML parser is limited",
        "XML Graph has wrong version",
        "XML Import Channel",
        "too many XML",
        "Attribute ",
        "Could not find real path of",
        "could not find CPU close to GPU",
        "could not find GPU",
        "could not find PCI SW",
        "could not find CPU numa ID",
        "too many Topo links",
        "tried to create too many nodes",
        "No path computed to go from",
        "Internal error : tree already has",
    ];
    const FAILED: [&str; 7] = ["init.backtrace", "init.group_backtrace", "init.fatal", "torch.nccl_error", "torch.nccl_result", "nccl_tests.failure", "jax.nccl_error"];
    if super::verdict::works(ask) || ask.any_of(&FAILED).is_empty() {
        return None;
    }
    let hits: Vec<Hit<'_>> = ask
        .any_of(&["warn.unknown", "topo.no_real_path", "topo.attribute", "jax.nccl_error"])
        .into_iter()
        .filter(|h| match h.entry.kind.as_str() {
            // Later versions go on without the path, and say it at a lower level.
            "topo.no_real_path" => h.text().contains(" WARN "),
            "topo.attribute" => true,
            "jax.nccl_error" => h.get("last").is_some_and(|l| WORDS.iter().any(|w| l.starts_with(w))),
            _ => {
                ["graph/xml", "graph/topo", "graph/search", "graph/paths", "graph/connect"].iter().any(|f| h.entry.first.file.contains(f))
                    && WORDS.iter().any(|w| h.text().contains(w))
            }
        })
        .collect();
    let first = hits.first()?;
    let said = first.get("last").unwrap_or_else(|| first.text().rsplit_once(" WARN ").map_or(first.text(), |(_, t)| t));
    let ranks = ranks_of(&hits);
    let of = if ranks.is_empty() { "the machine".to_owned() } else { ranks_text(&ranks) };
    let title: String = format!("NCCL cannot read the topology of {of}: {said}").chars().take(100).collect();
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Likely, title);
    prove(&mut finding, &hits);
    finding.why = "NCCL describes the machine as a tree of processors, PCI switches, GPUs and network cards, read from the system or from the file that NCCL_TOPO_FILE names. That description is missing, broken, of another machine, or too large for this version, and the init fails at once.".to_owned();
    finding.fixes = vec![
        fix(
            "Run without the file",
            "NCCL_TOPO_FILE or NCCL_GRAPH_FILE is set, by the job or by the image.",
            &["env | grep -e NCCL_TOPO_FILE -e NCCL_GRAPH_FILE", "unset NCCL_TOPO_FILE NCCL_GRAPH_FILE"],
            "nothing",
            "a virtual machine may lose bandwidth without its file",
            "set them again",
        ),
        fix(
            "See what NCCL finds by itself",
            "No file is set, or it fails without it too.",
            &["NCCL_TOPO_DUMP_FILE=topo.xml NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH PROGRAM", "ls /sys/class/pci_bus   # a container needs the host's /sys"],
            "nothing",
            "none",
            "",
        ),
    ];
    finding.verify = lines(&["The new log reaches `Init COMPLETE`."]);
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn a_broken_description_ends_the_init() {
        let warn = "h1:1:2 [2] graph/xml.cc:155 NCCL WARN XML Parse : expected >, got '<'\n";
        assert!(found(warn).is_none());
        let f = found(&format!("{warn}h1:1:2 [2] NCCL INFO graph/xml.cc:300 -> 3\n")).expect("topology");
        assert_eq!(f.confidence, super::Confidence::Likely);
    }

    #[test]
    fn a_graph_file_that_is_not_there_ends_the_init_too() {
        let log =
            "h1:1:2 [0] graph/xml.cc:901 NCCL WARN Could not open XML graph file /opt/site/graph.xml : No such file or directory\nh1:1:2 [0] NCCL INFO graph/search.cc:873 -> 2\n";
        assert!(found(log).is_some());
        // A topology file that is missing is only said, and NCCL looks for itself.
        assert!(found(&log.replace("graph file", "topology file")).is_none());
    }

    #[test]
    fn a_missing_way_back_is_certain() {
        let f = found("h1:1:2 [2] /build/rccl/hipify/src/graph/paths.cc:120 NCCL WARN Failed to find reverse path from remNode 0/200000 nlinks 3 to node 0/700000\n")
            .expect("topology");
        assert_eq!(f.confidence, super::Confidence::Certain);
        assert!(found("h1:1:2 [0] NCCL INFO Could not find a path for pattern 4, falling back to simple order\n").is_none());
    }

    #[test]
    fn a_hidden_path_and_a_lacking_attribute_are_quoted_by_others_too() {
        let hidden =
            "h1:1:2 [0] graph/xml.cc:332 NCCL WARN Could not find real path of /sys/class/pci_bus/0000:21/../../0000:21:00.0\nh1:1:2 [0] NCCL INFO graph/xml.cc:469 -> 2\n";
        assert!(found(hidden).is_some_and(|f| f.title.contains("pci_bus")));
        assert!(found(&hidden.replace("graph/xml.cc:332 NCCL WARN", "NCCL INFO")).is_none());
        let torch = "torch.distributed.DistBackendError: NCCL error in: /x/NCCLUtils.hpp:77, internal error - please report this issue to the NCCL developers, NCCL version 2.26.2\nncclInternalError: Internal check failed.\nLast error:\nAttribute arch of node cpu not found\n";
        assert!(found(torch).is_some_and(|f| f.title.contains("Attribute arch of node cpu not found")));
        let jax = "INTERNAL: xla/service/gpu/nccl_utils.cc:305: NCCL operation ncclCommInitRank(&comm, nranks, id, rank) failed: internal error. Last NCCL warning(error) log entry (may be unrelated) 'Attribute busid of node nic not found'.; current tracing scope: x\n";
        assert!(found(jax).is_some_and(|f| f.title.contains("Attribute busid of node nic not found")));
    }
}
