//! duplicate-gpu: Two ranks use the same GPU.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "duplicate-gpu", aliases: &[], summary: "Two ranks use the same GPU.", explanation: include_str!("duplicate_gpu.md") },
    check,
    explains: &["peer-crash", "missing-rank", "app-crash", "collective-timeout", "stall", "bootstrap-unreachable"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hits = ask.hits("gpu.duplicate");
    let Some(first) = hits.first() else { return Vec::new() };
    let mut ranks = ranks_of(&hits);
    ranks.extend(hits.iter().flat_map(|h| [h.num("rank"), h.num("peer_rank")]).flatten().filter_map(|r| u32::try_from(r).ok()));
    ranks.sort_unstable();
    ranks.dedup();
    let device = first.get("bus").map_or_else(String::new, |b| format!(" (CUDA device {b})"));
    let mut finding = Finding::new("duplicate-gpu", Severity::Error, Confidence::Certain, format!("{} use one GPU{device}", ranks_text(&ranks)));
    "The library compared the PCI addresses of all ranks and found one GPU twice on one node. It refuses that; the pair exits and the other ranks wait for it for ever or see their connection closed.".clone_into(&mut finding.why);
    finding.hosts = hosts_of(&hits);
    finding.evidence = hits.iter().take(6).map(Hit::evidence).collect();
    finding.evidence.extend(ask.hits("torch.barrier_device").iter().take(1).map(Hit::evidence));
    finding.ranks = ranks;
    finding.fixes = vec![
        Fix {
            title: "Give every rank its own GPU".to_owned(),
            when: "The program chooses the device itself".to_owned(),
            commands: vec!["torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))  # before init_process_group".to_owned()],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "remove the line".to_owned(),
        },
        Fix {
            title: "Start no more ranks on a node than it has GPUs, and let each see them all".to_owned(),
            when: "The launcher gives out the devices (CUDA_VISIBLE_DEVICES, --nproc_per_node, --gpus-per-task)".to_owned(),
            commands: vec!["nvidia-smi -L".to_owned(), "env | grep -e VISIBLE_DEVICES -e LOCAL_RANK -e SLURM_LOCALID -e OMPI_COMM_WORLD_LOCAL_RANK".to_owned()],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "restore the launch line".to_owned(),
        },
    ];
    finding.avoid = vec!["NCCL_IGNORE_DUPLICATE_GPU or another back end: two ranks on one GPU halve its speed and its memory.".to_owned()];
    finding.verify = vec!["The busId in the Init lines differs between all ranks of a node.".to_owned()];
    vec![finding]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;

    #[test]
    fn the_pair_is_named_and_closed_connections_are_its_consequence() {
        let a = analyze_texts(&[
            ("rank0.log", "h1:10:10 [0] init.cc:900 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 4f000\n"),
            ("rank2.log", "h1:12:12 [1] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer h1<40012>\n"),
        ]);
        let f = a.findings.iter().find(|f| f.id == "duplicate-gpu").unwrap();
        assert_eq!(f.ranks, [0, 1]);
        assert!(f.title.contains("4f000"));
        assert!(a.findings.iter().all(|f| f.id != "peer-crash" || f.caused_by.is_some()));
    }

    #[test]
    fn the_barrier_hint_of_torch_alone_is_nothing() {
        let a = analyze_texts(&[(
            "rank0.log",
            "[rank0]:[W ProcessGroupNCCL.cpp:1] [PG 0 Rank 0]  using GPU 0 to perform barrier as devices used by this process are currently unknown.\n",
        )]);
        assert!(a.findings.iter().all(|f| f.id != "duplicate-gpu"));
    }
}
