//! process-limit: The user, service or container may not start another thread.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, capital, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule, teardown};

const ID: &str = "process-limit";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &["thread-limit"], summary: "The user, service or container may not start another thread.", explanation: include_str!("process_limit.md") },
    check,
    explains: &["app-crash", "peer-crash", "missing-rank", "bootstrap-unreachable", "collective-timeout", "stall"],
    only_alone: false,
};

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let end = teardown::Teardown::of(ask);
    let hits: Vec<Hit<'_>> = ask.any_of(&["app.thread_limit", "system.thread_failed"]).into_iter().filter(|h| !end.went_on(h) && !teardown::worked_on(ask, h)).collect();
    let Some(first) = hits.first() else { return Vec::new() };
    let who = capital(&ranks_text(&ranks_of(&hits)));
    // Old runtimes of containers refuse a newer system call with this errno.
    let refused = first.text().contains("Operation not permitted");
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Likely, format!("{who} could not start a thread: the limit on processes is reached"));
    if refused {
        finding.title = format!("{who} could not start a thread: the container forbids it");
    }
    prove(&mut finding, &hits);
    finding.why = if refused {
        "Starting a thread was not permitted. Old container runtimes do not know the newer system call for it (clone3) and forbid it. The process then ends or goes on without a worker, and other ranks lose it."
    } else {
        "The kernel refused a new thread. Threads count as processes: against the user's limit (ulimit -u), and against the limit of the container, the service or the job (pids.max). NCCL, OpenMP, BLAS, the data loaders and Ray start dozens for each rank. Lack of memory for its stack is the rare alternative."
    }
    .to_owned();
    let few = fix(
        "Start fewer threads",
        "Now.",
        &["export OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4", "# fewer data loader workers; Ray: ray start --num-cpus=N"],
        "nothing",
        "slower preprocessing, if it needs them",
        "unset them",
    );
    let limit = fix(
        "Raise the limit",
        "Always.",
        &[
            "ulimit -u unlimited   # in the shell or service that starts the ranks",
            "docker run --pids-limit=-1 …   # Kubernetes: podPidsLimit of the kubelet; systemd: TasksMax=infinity",
        ],
        "nothing",
        "none",
        "start it with the former limit",
    );
    let runtime = fix(
        "Take a newer container runtime",
        "The message says `Operation not permitted`.",
        &["docker version; runc --version", "docker run --security-opt seccomp=unconfined …   # proves it"],
        "root",
        "none",
        "install the former version",
    );
    finding.fixes = if refused { vec![runtime, few] } else { vec![limit, few] };
    finding.avoid = lines(&["NCCL settings: the refused thread may be anybody's, and the limit stays."]);
    finding.verify = lines(&["grep processes /proc/PID/limits; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.current   # inside the container"]);
    vec![finding]
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn a_refused_thread_is_the_limit_in_all_words() {
        for text in [
            "h1:10:40 [1] proxy.cc:1800 NCCL WARN Thread creation failed: Resource temporarily unavailable\n",
            "libgomp: Thread creation failed: Resource temporarily unavailable\n",
            "OpenBLAS blas_thread_init: pthread_create failed for thread 50 of 64: Resource temporarily unavailable\n",
            "[rank3]: RuntimeError: can't start new thread\n",
        ] {
            let f = found(text).unwrap_or_else(|| panic!("{text}"));
            assert!(f.title.contains("limit on processes"), "{}", f.title);
        }
        let forbidden = found("OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 32: Operation not permitted\n").expect("forbidden");
        assert!(forbidden.title.contains("the container forbids it"), "{}", forbidden.title);
    }

    #[test]
    fn a_rank_that_is_lost_by_it_is_its_consequence() {
        let text = "libgomp: Thread creation failed: Resource temporarily unavailable\n[rank0]:[W1016 00:45:40.2 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=102, addr=[n1]:55672, remote=[n0]:29500): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n";
        let a = analyze_texts(&[("job.log", text)]);
        assert_eq!(a.findings[0].id, super::ID);
        assert!(a.findings.iter().skip(1).all(|f| f.caused_by == Some(super::ID)));
    }

    #[test]
    fn a_thread_that_failed_by_itself_is_another_matter() {
        assert!(found("Exception in thread Thread-3:\nValueError: x\n").is_none());
    }
}
