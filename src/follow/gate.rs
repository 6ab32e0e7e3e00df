//! The gate: when a start is good enough, and when it is bad.

use crate::digest::Sample;
use crate::event::tables::PROOF_OF_COLLECTIVE;
use crate::expect::{Expectations, Key};
use crate::rules::query::{Ask, evidence};
use crate::rules::{Analysis, Confidence, Evidence, Severity};

/// What a start must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Until {
    /// Every rank is Init COMPLETE
    Ready,
    /// There is proof that a collective has finished
    Collective,
}

/// The gate's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// All that was asked for is there.
    Yes,
    /// An error is certain, or an expectation is violated.
    No,
}

/// The gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// What the start must reach.
    pub until: Until,
}

impl Gate {
    /// Decides; `None` while nothing is certain.
    pub fn check(self, analysis: &Analysis, expected: &Expectations) -> Option<Passed> {
        if analysis.findings.iter().any(|f| f.severity == Severity::Error && f.confidence == Confidence::Certain) {
            return Some(Passed::No);
        }
        let ask = Ask::new(&analysis.job);
        let there = match self.until {
            Until::Ready => is_ready(ask, expected),
            Until::Collective => is_ready(ask, expected) && proof(ask).is_some() || only_proof(ask),
        };
        (there && analysis.undecided.is_empty()).then_some(Passed::Yes)
    }

    /// What is missing, one plain sentence each, for the time that ran out.
    pub fn missing(self, analysis: &Analysis, expected: &Expectations) -> Vec<String> {
        let job = &analysis.job;
        let ask = Ask::new(job);
        let mut out = Vec::new();
        if !is_ready(ask, expected) {
            let want = expected.number(Key::Nranks).or(job.nranks);
            let done = job.world().map_or(0, |w| ask.views(w).filter(|(_, l)| l.complete.is_some()).count());
            out.push(match want {
                Some(n) => format!("{done} of {n} ranks are Init COMPLETE."),
                None => "No line says how many ranks there are: NCCL_DEBUG=INFO prints it, and the output of every rank is needed.".to_owned(),
            });
        }
        if self.until == Until::Collective && proof(ask).is_none() {
            out.push(
                "No line proves that a collective has finished: NCCL logs only that one was enqueued. Proof is a framework's line behind its warm-up (VLLM_LOGGING_LEVEL=INFO), a row of nccl-tests, or RCCL's end of a kernel (RCCL_KERNEL_COLL_TRACE_ENABLE=1 with NCCL_DEBUG_SUBSYS=INIT,COLL)."
                    .to_owned(),
            );
        }
        out.extend(analysis.undecided.iter().cloned());
        out
    }
}

/// Every expected rank completed the largest communicator.
fn is_ready(ask: Ask<'_>, expected: &Expectations) -> bool {
    let enough = expected.number(Key::Nranks).is_none_or(|n| ask.job.nranks.is_some_and(|seen| seen >= n));
    enough && ask.all_complete()
}

/// No line of the library itself is there (its log is off), but its work is done.
fn only_proof(ask: Ask<'_>) -> bool {
    ask.job.nranks.is_none() && proof(ask).is_some()
}

/// The line that proves that a collective has finished.
pub fn proof(ask: Ask<'_>) -> Option<Evidence> {
    let completed = |s: &Sample| s.num("completed").is_some_and(|n| n >= 1);
    let mut found: Vec<(Option<u32>, &Sample)> = Vec::new();
    for (_, p) in ask.procs() {
        let ledger = &p.log.ledger;
        found.extend(PROOF_OF_COLLECTIVE.iter().chain(&["rocm.kernel_end"]).flat_map(|kind| ledger.of(kind)).map(|e| (p.rank, &*e.first)));
        found.extend(
            ["torch.watchdog_status", "torch.dump_signal", "torch.heartbeat"].iter().flat_map(|kind| ledger.of(kind)).map(|e| (p.rank, &*e.last)).filter(|(_, s)| completed(s)),
        );
    }
    found.into_iter().min_by_key(|(_, s)| s.at).map(|(rank, sample)| evidence(ask.job, rank, sample))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn rank(rank: u32, complete: bool) -> String {
        let head = format!("node1:{}:{} [{rank}] NCCL INFO", 100 + rank, 200 + rank);
        let comm = format!("comm 0x{rank}a rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId {rank}000 commId 0x77");
        let end = if complete { format!("{head} {comm} - Init COMPLETE\n") } else { String::new() };
        format!("{head} NCCL version 2.27.3+cuda12.9\n{head} Using network IB\n{head} {comm} - Init START\n{end}")
    }

    #[test]
    fn ready_needs_every_rank_and_collective_needs_proof() {
        let none = Expectations::default();
        let gate = |until| Gate { until };
        let half = analyze_texts(&[("a", &rank(0, true)), ("b", &rank(1, false))]);
        assert_eq!(gate(Until::Ready).check(&half, &none), None);
        assert!(gate(Until::Ready).missing(&half, &none)[0].contains("1 of 2 ranks"));
        let both = analyze_texts(&[("a", &rank(0, true)), ("b", &rank(1, true))]);
        assert_eq!(gate(Until::Ready).check(&both, &none), Some(Passed::Yes));
        assert_eq!(gate(Until::Collective).check(&both, &none), None);
        assert!(gate(Until::Collective).missing(&both, &none)[0].contains("enqueued"));
        let mut more = Expectations::default();
        more.add("nranks=4").unwrap();
        assert_eq!(gate(Until::Ready).check(&both, &more), None, "four ranks were promised");
        let row = format!("{}     1048576        262144     float     sum      -1    45.10   23.25   23.25      0    44.90   23.35   23.35      0\n", rank(0, true));
        let tested = analyze_texts(&[("a", &row), ("b", &rank(1, true))]);
        assert_eq!(gate(Until::Collective).check(&tested, &none), Some(Passed::Yes));
    }
}
