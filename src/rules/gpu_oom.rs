//! gpu-oom: A GPU ran out of memory on one rank; the others wait for it or lose it.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, capital, hosts_of, ranks_of, ranks_text};
use super::{Cause, Rule, teardown};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "gpu-oom", aliases: &[], summary: "A GPU ran out of memory on one rank; the others wait for it or lose it.", explanation: include_str!("gpu_oom.md") },
    check,
    explains: &["app-crash", "gpu-error", "peer-crash", "missing-rank", "collective-mismatch", "collective-timeout", "bootstrap-unreachable", "stall"],
    only_alone: false,
};

/// The words of an allocation that found no room on the GPU.
fn says_oom(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("out of memory") && !text.contains("pool")
        || text.contains("cudaerrormemoryallocation")
        || text.contains("error_out_of_memory")
        || text.contains("status_alloc_failed")
}

/// Frameworks that find too little room on the GPU by themselves, or say so in their own words.
fn framework_says(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "Free memory on device",
        "No available memory for the cache blocks",
        "Try increasing `gpu_memory_utilization`",
        "Please try to increase --mem-fraction-static",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
        "OOM when allocating tensor",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "HIPBLAS_STATUS_ALLOC_FAILED",
    ];
    WORDS.iter().any(|w| text.contains(w))
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let end = teardown::Teardown::of(ask);
    let hits: Vec<Hit<'_>> = ask
        .any_of(&["torch.oom", "cuda.failure", "nccl_tests.failure", "torch.cuda_error", "app.exception", "app.terminate", "app.cuda_error", "jax.nccl_error"])
        .into_iter()
        .filter(|h| match h.entry.kind.as_str() {
            "torch.oom" => true,
            "jax.nccl_error" => h.text().split_once("log entry (may be unrelated)").is_some_and(|(_, last)| says_oom(last)),
            // Host memory has the same words; only an exception that names the GPU's runtime counts.
            "app.exception" | "app.terminate" if framework_says(h.text()) => true,
            "app.exception" | "app.terminate" => says_oom(h.text()) && ["CUDA", "cuda", "HIP", "hip", "GPU"].iter().any(|w| h.text().contains(w)),
            _ => h.get("text").is_some_and(says_oom),
        })
        .filter(|h| !end.went_on(h))
        .collect();
    // Up to 2.13 NCCL prints the failed allocation alone.
    let hits = if hits.is_empty() && ask.any_of(&["cuda.failure", "torch.cuda_error"]).is_empty() {
        ask.hits("cuda.alloc_failed").into_iter().filter(|h| h.text().contains("to CUDA ") && !end.went_on(h)).collect()
    } else {
        hits
    };
    let grade = if hits.iter().all(|h| matches!(h.entry.kind.as_str(), "cuda.alloc_failed" | "jax.nccl_error") || h.text().contains("STATUS_ALLOC_FAILED")) {
        Confidence::Likely
    } else {
        Confidence::Certain
    };
    let Some(first) = teardown::first(&hits) else { return Vec::new() };
    let ranks = ranks_of(&hits);
    let gpu = first.get("gpu").map_or_else(String::new, |g| format!(", GPU {g}"));
    let host = if first.host().is_empty() { String::new() } else { format!(" on {}", first.host()) };
    let mut finding = Finding::new("gpu-oom", Severity::Error, grade, format!("{} ran out of GPU memory{host}{gpu}", capital(&ranks_text(&ranks))));
    let size = match (first.get("size"), first.get("unit")) {
        (Some(size), Some(unit)) => format!(" for {size} {unit}iB"),
        _ => String::new(),
    };
    finding.why = format!(
        "An allocation{size} on the GPU failed. The rank then leaves the collective or dies, and the others wait for it, time out or lose their connection: those errors are consequences. What else fills the GPU (another process, a leftover of an earlier run) is worth a look before the program is changed."
    );
    finding.hosts = hosts_of(&hits);
    finding.evidence = std::iter::once(first).chain(hits.iter().copied()).map(|h| h.evidence()).take(6).collect();
    finding.evidence.extend(ask.hits("cuda.alloc_failed").iter().take(2).map(Hit::evidence));
    finding.ranks = ranks;
    // Memory that a peer cannot import is reported as missing where the ranks disagree on cuMem.
    let cumem: std::collections::BTreeSet<&str> = ask.settings("NCCL_CUMEM_ENABLE").iter().map(|s| s.value).collect();
    if cumem.len() > 1 {
        finding.caused_by = Some("env-mismatch");
    }
    finding.fixes = fixes();
    finding.avoid = vec!["Raising the collective's time-out: the rank that ran out of memory never comes.".to_owned()];
    finding.verify = vec!["nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv -l 1  # while the job starts".to_owned()];
    vec![finding]
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Free the GPU of other processes".to_owned(),
            when: "The GPU is not empty before the job starts".to_owned(),
            commands: vec!["nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,name --format=csv".to_owned()],
            needs: "nothing".to_owned(),
            cost: "none".to_owned(),
            undo: "none needed".to_owned(),
        },
        Fix {
            title: "Need less memory: smaller batch or context, more sharding, a lower share for the cache".to_owned(),
            when: "The program itself fills the GPU".to_owned(),
            commands: vec![
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # where much is reserved but unallocated".to_owned(),
                "vllm serve … --gpu-memory-utilization 0.85 --max-model-len N".to_owned(),
            ],
            needs: "nothing".to_owned(),
            cost: "throughput".to_owned(),
            undo: "restore the former sizes".to_owned(),
        },
        Fix {
            title: "Leave room for NCCL's own buffers".to_owned(),
            when: "The library's allocation failed, not the program's".to_owned(),
            commands: vec!["NCCL_BUFFSIZE=2097152 NCCL_MAX_NCHANNELS=8  # the same on all ranks".to_owned()],
            needs: "nothing".to_owned(),
            cost: "bandwidth".to_owned(),
            undo: "unset both".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Verdict;

    #[test]
    fn the_rank_without_room_is_the_cause() {
        let a = analyze_texts(&[
            ("rank1.log", "h1:11:11 [1] include/alloc.h:190 NCCL WARN Cuda failure 'out of memory'\n"),
            ("rank0.log", "h1:10:10 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer h1<40012>\n"),
        ]);
        assert_eq!(a.findings[0].id, "gpu-oom");
        assert_eq!(a.findings[0].ranks, [1]);
        assert_eq!(a.verdict, Verdict::Failed);
    }

    #[test]
    fn frameworks_say_it_in_their_own_words() {
        for text in [
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1024 bytes.\n",
            "h1:1:2 [0] include/alloc.h:48 NCCL WARN Failed to CUDA calloc 4194304 bytes\n",
        ] {
            let a = analyze_texts(&[("rank0.log", text)]);
            assert_eq!(a.findings.first().map(|f| f.id), Some("gpu-oom"), "{text}");
        }
    }

    #[test]
    fn host_memory_is_not_gpu_memory() {
        let a = analyze_texts(&[("job.log", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n")]);
        assert!(a.findings.iter().all(|f| f.id != "gpu-oom"));
    }

    #[test]
    fn jax_quotes_the_librarys_last_warning() {
        let text = "Execution of replica 0 failed: INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) 'Cuda failure 2 'out of memory''\n";
        let a = analyze_texts(&[("jax.log", text)]);
        assert_eq!(a.findings.first().map(|f| (f.id, f.confidence)), Some(("gpu-oom", crate::rules::Confidence::Likely)));
    }

    #[test]
    fn memory_that_ran_out_on_the_way_to_a_finished_run_is_no_failure() {
        let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.20 GiB is free.\n";
        let done = "Training completed. Do not forget to share your model on huggingface.co/models =)\n";
        assert!(analyze_texts(&[("job.log", &format!("{oom}{done}"))]).findings.iter().all(|f| f.id != "gpu-oom"));
        assert!(analyze_texts(&[("job.log", &format!("{done}{oom}"))]).findings.iter().any(|f| f.id == "gpu-oom"));
    }
}
