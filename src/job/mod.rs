//! Job: who is who. Joins the digests' processes into ranks, communicators, hosts and runs, and compares them.
//!
//! Knows no cause. `identity` merges processes, `runs` splits attempts, `comms` joins communicators across ranks,
//! `transports` says what runs over what, `compare` finds outliers, `divergence` compares the calls.

mod build;
mod comms;
mod compare;
pub mod divergence;
pub mod facts;
mod identity;
mod owner;
mod pci;
mod ranks;
mod runs;
mod transports;

pub use compare::{Outlier, outliers};
pub use divergence::Divergence;
pub use facts::{Facts, Iommu, NodeFacts, Rail};
pub use pci::{Between, Bus};
pub use ranks::rank_of_name;

use crate::digest::{Process, Sample, StreamInfo};
use crate::event::{Library, Stage};
use crate::line::Time;
use std::collections::BTreeMap;

/// Size of a job beyond which nobody lists the ranks that have no log.
const MAX_ABSENT: u32 = 1 << 20;

/// From where the job is seen; the stall rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// The logs are whole: the job is over, or nobody looks any more.
    PostMortem,
    /// The logs are being written.
    Live {
        /// Microseconds since any stream brought the job forward.
        silent_micros: u64,
        /// Microseconds of silence from which on it counts as waiting.
        stall_micros: u64,
    },
}

/// Everything the rules may ask, identities resolved.
#[derive(Debug)]
pub struct Job {
    /// The inputs.
    pub streams: Vec<StreamInfo>,
    /// Library, if its own lines or unmistakable signs name it.
    pub library: Option<Library>,
    /// Distinct versions as printed, sorted.
    pub versions: Vec<String>,
    /// Processes of all runs.
    pub procs: Vec<Proc>,
    /// Communicators of all runs, largest first.
    pub comms: Vec<Comm>,
    /// Index of the last run's largest communicator.
    pub world: Option<usize>,
    /// Size of the largest communicator named in the log.
    pub nranks: Option<u32>,
    /// NCCL's nNodes if printed, else the distinct hosts seen.
    pub nnodes: Option<u32>,
    /// Distinct networks of `Using network X`, else of NET channel lines; sorted.
    pub nets: Vec<String>,
    /// Hosts in order of their lowest rank.
    pub hosts: Vec<HostRow>,
    /// The last run's ranks, ascending; one row for every rank that has any line.
    pub ranks: Vec<RankRow>,
    /// What runs over what in the last run.
    pub transports: Vec<Transport>,
    /// Where ranks issued different collectives in the last attempt.
    pub divergences: Vec<Divergence>,
    /// Number of attempts found in the logs (at least 1 if anything was recognised).
    pub runs: Vec<Run>,
    /// Vantage.
    pub vantage: Vantage,
    /// What the hosts say about themselves.
    pub facts: Facts,
    /// Kind of a fact → the processes of the last attempt that tell of it, ascending: of thousands of processes only
    /// these are asked.
    tellers: BTreeMap<String, Vec<usize>>,
}

/// One operating system process.
#[derive(Debug)]
pub struct Proc {
    /// Host name; empty if no NCCL header named it.
    pub host: String,
    /// Process id, 0 if unknown.
    pub pid: u32,
    /// Index into `Job::hosts`, if its host is known.
    pub host_index: Option<usize>,
    /// Its rank in the largest communicator of its run, if it has exactly one.
    pub rank: Option<u32>,
    /// The rank comes from a wrapper or a file name, not from the library.
    pub rank_is_hint: bool,
    /// (device, rank) of a process that drives several devices.
    pub device_ranks: Vec<(u32, u32)>,
    /// Attempt that it belongs to, 0-based.
    pub run: usize,
    /// It has records with an NCCL header.
    pub nccl: bool,
    /// What it did, merged over streams.
    pub log: Process,
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Run {
    /// First record of any of its processes.
    pub first: Sample,
    /// Ranks seen.
    pub ranks: usize,
}

/// A communicator over all ranks that spoke of it.
#[derive(Debug)]
pub struct Comm {
    /// Id that is equal on all ranks, if printed.
    pub id: Option<u64>,
    /// Size, if printed.
    pub nranks: Option<u32>,
    /// Members with a log, ordered by rank.
    pub members: Vec<Member>,
    /// NCCL's count of nodes, if printed.
    pub nnodes: Option<u32>,
    /// Data of this communicator crosses nodes.
    pub spans_nodes: bool,
    /// Attempt.
    pub run: usize,
    /// It is a split of another.
    pub is_child: bool,
}

/// One rank's view of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Rank, if printed.
    pub rank: Option<u32>,
    /// Index into `Job::procs`.
    pub proc: usize,
    /// Index into that process's `comms`.
    pub log: usize,
}

/// A host.
#[derive(Debug, Clone)]
pub struct HostRow {
    /// Name as printed (with the address appended where two hosts share a name).
    pub name: String,
    /// World ranks seen on it, ascending.
    pub ranks: Vec<u32>,
}

/// One rank of the last run.
#[derive(Debug, Clone)]
pub struct RankRow {
    /// World rank.
    pub rank: u32,
    /// Host name, if known.
    pub host: Option<String>,
    /// Process id, if known.
    pub pid: Option<u32>,
    /// CUDA or HIP device.
    pub device: Option<u32>,
    /// PCI bus id.
    pub bus_id: Option<String>,
    /// Furthest stage seen in the world communicator; a lower bound.
    pub stage: Stage,
    /// Network.
    pub net: Option<String>,
    /// Last record of the process.
    pub last: Sample,
    /// Index into `Job::procs`.
    pub proc: usize,
}

/// What runs between two ranks of the world communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// As printed.
    pub via: String,
    /// Number of channels.
    pub channels: u32,
}

impl Job {
    /// Path of a stream.
    pub fn path(&self, stream: u32) -> &str {
        self.streams.get(stream as usize).map_or("?", |s| s.path.as_str())
    }

    /// Index of the last attempt.
    pub fn last_run(&self) -> usize {
        self.runs.len().saturating_sub(1)
    }

    /// The processes of the last attempt that tell of a kind, ascending.
    pub fn tellers(&self, kind: &str) -> &[usize] {
        self.tellers.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The last run's largest communicator.
    pub fn world(&self) -> Option<&Comm> {
        self.world.map(|i| &self.comms[i])
    }

    /// Latest time of any stream, on any clock.
    pub fn last_time(&self) -> Option<Time> {
        self.streams.iter().filter_map(|s| s.last_time).max()
    }

    /// World ranks of the last run that have no line at all, if the size is known.
    pub fn absent_ranks(&self) -> Vec<u32> {
        // A damaged number must not become a list of four thousand million ranks.
        let Some(n) = self.nranks.filter(|n| *n <= MAX_ABSENT) else { return Vec::new() };
        let mut seen = self.ranks.iter().map(|r| r.rank).peekable();
        (0..n)
            .filter(|r| {
                while seen.peek().is_some_and(|s| s < r) {
                    seen.next();
                }
                seen.peek() != Some(r)
            })
            .collect()
    }

    /// The digest's view of a member.
    pub fn comm_log(&self, member: &Member) -> &crate::digest::CommLog {
        &self.procs[member.proc].log.comms[member.log]
    }
}
