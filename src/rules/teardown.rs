//! Helpers on how a run ended: what began the failure, what merely follows it, and what is only the noise of leaving.

use super::network;
use super::query::{Ask, Hit};
use crate::digest::Mark;
use crate::line::Clock;
use std::cmp::Ordering;

/// Kinds that begin a failure by themselves. Where one of them stands, connections that break are its consequence.
pub const ORIGINS: &[&str] = &[
    "cuda.failure",
    "cuda.alloc_failed",
    "torch.oom",
    "torch.cuda_error",
    "kernel.xid",
    "kernel.gpu_lost",
    "kernel.io_page_fault",
    "kernel.io_page_fault_gpu",
    "rocm.aperture_violation",
    "rocm.memory_fault",
    "rocm.hw_exception",
    "rocm.queue_abort",
    "rocm.ipc_failed",
    "rocm.illegal_state",
    "rocm.no_kernel",
    "gpu.duplicate",
    "version.mismatch",
    "socket.wrong_type",
    "socket.wrong_magic",
    "bootstrap.rank_mismatch",
    "bootstrap.rank_twice",
    "bootstrap.truncated",
    "bootstrap.no_interface",
    "bootstrap.family",
    "net.message_truncated",
    "net.socket_truncated",
    "net.none",
    "transport.none",
    "net.device_counts",
    "shm.error",
    "shm.bad_size",
    "ib.modify_qp",
    "ib.reg_mr",
    "ib.create_cq",
    "ib.create_qp",
    "ib.alloc_pd",
    "ib.query_failed",
    "ib.call_failed",
    "ib.async_fatal",
    "ib.device_failed",
    "ib.open_failed",
    "p2p.ipc_failed",
    "nvls.bind_failed",
    "plugin.ofi_error",
    "proxy.poll_failed",
    "app.fd_limit",
    "app.bus_error",
];

/// A program's own words that it has done all its work.
const FINISHED: &[&str] = &["mlperf.run_stop", "nccl_tests.done", "train.done"];

/// Lines that a program prints once a step of its work is done.
const STEPS: &[&str] = &["train.step", "megatron.iteration", "deepspeed.step", "mlperf.progress", "vllm.tps", "nccl_tests.row"];

/// Order of two marks where it can be known: by line within a stream, by comparable clocks across streams.
pub fn order(a: Mark, b: Mark) -> Option<Ordering> {
    if a.stream == b.stream {
        return Some(a.line.cmp(&b.line));
    }
    let (x, y) = (a.time?, b.time?);
    (x.clock == y.clock && x.clock != Clock::Boot).then(|| x.micros.cmp(&y.micros))
}

/// How the run ended, asked once and then held against many records.
pub struct Teardown<'a> {
    finished: Vec<Hit<'a>>,
    alive: Vec<Hit<'a>>,
}

impl<'a> Teardown<'a> {
    /// Collects the program's own words that its work is done, or that it still answers.
    pub fn of(ask: Ask<'a>) -> Self {
        Self { finished: ask.any_of(FINISHED), alive: ask.any_of(FINISHED).into_iter().chain(ask.any_of(&["vllm.ready", "vllm.tps", "sglang.ready"])).collect() }
    }

    /// Whether the record belongs to the end of a run whose work was done: a program's own word that it has finished
    /// stands before it, or all communicators of its process were already destroyed.
    pub fn covers(&self, hit: &Hit<'_>) -> bool {
        // Without a common order the word of the finished run wins: leaving processes complain, working ones rarely do.
        if self.finished.iter().any(|end| order(end.at(), hit.at()).is_none_or(Ordering::is_le)) {
            return true;
        }
        let comms = &hit.process().log.comms;
        let destroyed = |c: &crate::digest::CommLog| matches!(&c.end, Some((false, s)) if order(s.at, hit.at()) == Some(Ordering::Less));
        !comms.is_empty() && comms.iter().all(destroyed)
    }

    /// Whether the program said behind this line that all its work is done.
    pub fn done_after(&self, stream: usize, line: u64) -> bool {
        // A test prints its end behind wrong results, too.
        let mut work = self.finished.iter().filter(|h| h.entry.kind != "nccl_tests.done");
        work.any(|h| h.entry.last.at.stream as usize == stream && h.entry.last.at.line > line)
    }

    /// Whether the program went on and did its work although the record stands before.
    pub fn went_on(&self, hit: &Hit<'_>) -> bool {
        self.alive.iter().any(|h| order(hit.entry.last.at, h.entry.last.at) == Some(Ordering::Less))
    }

    /// Neither noise at the end nor something that the program survived.
    pub fn matters(&self, hit: &Hit<'_>) -> bool {
        !self.covers(hit) && !self.went_on(hit)
    }
}

/// Whether the process worked on behind the record, step by step. One more step may have been under way when another
/// rank of the same output failed; without all ranks no second one ends.
pub fn worked_on(ask: Ask<'_>, hit: &Hit<'_>) -> bool {
    const A_WHILE: i64 = 60_000_000;
    let from = hit.entry.last.at;
    let mut steps: Vec<Mark> = ask.any_of(STEPS).iter().filter(|s| s.proc == hit.proc).flat_map(|s| s.entry.samples.iter().chain([&s.entry.last])).map(|s| s.at).collect();
    steps.retain(|at| order(from, *at) == Some(Ordering::Less));
    steps.sort_unstable();
    steps.dedup();
    let long_after = |at: &Mark| at.time.zip(from.time).is_some_and(|(a, b)| a.clock == b.clock && a.micros - b.micros > A_WHILE);
    steps.len() > 1 || steps.iter().any(long_after)
}

/// The first hit of each stream. Hits come in order of their marks.
pub fn firsts<'a>(hits: &[Hit<'a>]) -> Vec<Hit<'a>> {
    let mut list: Vec<Hit<'a>> = Vec::new();
    for hit in hits {
        if !list.iter().rev().take(1).any(|h| h.at().stream == hit.at().stream) {
            list.push(*hit);
        }
    }
    list
}

/// The first record that begins a failure, if any stands in the logs.
pub fn origin(ask: Ask<'_>) -> Option<Hit<'_>> {
    ask.any_of(ORIGINS).into_iter().chain(ask.any_of(&["ib.completion"]).into_iter().filter(|h| !matches!(h.num("status"), Some(5 | 12)))).next()
}

/// No rank has met the others, and connections fail for good: nobody can be lost who was never there.
pub fn stranded(ask: Ask<'_>) -> bool {
    !ask.any_of(&["socket.connect_failed", "socket.retries_exceeded"]).is_empty() && !ask.procs().any(|(p, _)| network::bootstrapped(ask, p))
}

/// The first of `hits` for which no other is known to be earlier.
pub fn first<'a>(hits: &[Hit<'a>]) -> Option<Hit<'a>> {
    let hits = firsts(hits);
    hits.iter().copied().find(|h| !hits.iter().any(|o| order(o.at(), h.at()) == Some(Ordering::Less)))
}

/// Ranks that took part and whose log just ends while others printed the end of the same communicator.
pub fn just_ended(ask: Ask<'_>) -> Vec<u32> {
    let mut silent = Vec::new();
    for comm in ask.comms() {
        let (mut ended, mut open) = (0, Vec::new());
        for (member, log) in ask.views(comm) {
            if log.end.is_some() {
                ended += 1;
            } else if log.complete.is_some() {
                open.extend(member.rank);
            }
        }
        if ended > 0 && Some(comm.members.len()) == comm.nranks.map(|n| n as usize) {
            silent.extend(open);
        }
    }
    silent.sort_unstable();
    silent.dedup();
    silent
}
