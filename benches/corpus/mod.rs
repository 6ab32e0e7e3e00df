//! A made-up but well-formed job: what NCCL 2.27 prints on each of its ranks, as large as wanted.
//!
//! Everything follows from the seed, so that two runs, or two machines, measure the same bytes.

mod init;
mod ops;

use init::Setup;
use ops::{Iteration, Operation};
use std::io::{self, Write};

/// GPUs, and so ranks, of one made-up host.
const PER_HOST: u32 = 8;
/// Output is handed on in pieces of about this size.
const CHUNK: usize = 1 << 20;

/// The job whose logs are generated.
#[derive(Debug, Clone, Copy)]
pub struct Corpus {
    /// Ranks of the job.
    pub ranks: u32,
    /// Where all identifiers, addresses and sizes come from.
    pub seed: u64,
    /// The rank that issues another operation as its n-th (counted from 1, over all its communicators).
    pub diverge: Option<(u32, u64)>,
    /// Calls as RCCL of ROCm 7 prints them.
    pub rccl: bool,
}

/// Which lines a log is made of.
#[derive(Clone, Copy)]
pub enum Content<'p> {
    /// A start-up block, then the plan's collectives of several communicators.
    Collectives(&'p Plan),
    /// About so many bytes of start-up blocks of one communicator after the other, with the NET and GRAPH
    /// subsystems on.
    Init(u64),
}

/// What every rank of a job issues, so that all agree whatever the length of their lines.
pub struct Plan {
    iteration: Iteration,
    rounds: u64,
}

/// One communicator as one rank sees it.
#[derive(Debug, Clone)]
struct Group {
    /// Job ranks of the members, in communicator order.
    members: Vec<u32>,
    /// This rank's place among them.
    me: u32,
    /// Address of the handle, 12 hex digits.
    comm: u64,
    /// The identity that all members share.
    id: u64,
    stream: u64,
    /// Where its buffers begin, without the leading digit.
    buffers: u64,
    /// Operations issued so far.
    issued: u64,
}

/// What one rank prints.
struct Writer {
    header: Vec<u8>,
    setup: Setup,
    groups: Vec<Group>,
    tails: Vec<Vec<u8>>,
    issued: u64,
    diverge_at: Option<u64>,
    /// What RCCL prints behind the buffers.
    third: &'static [u8],
}

impl Corpus {
    /// The operations that fill about `bytes` of one rank's log.
    pub fn plan(&self, bytes: u64) -> Plan {
        let iteration = Iteration::new(self.seed);
        let mut writer = Writer::new(&Self { diverge: None, ..*self }, 0);
        let start = writer.start_up_text().len() as u64;
        let mut text = Vec::new();
        iteration.operations.iter().for_each(|operation| writer.operation(operation, &mut text));
        let rounds = (bytes.saturating_sub(start) / text.len() as u64).max(1);
        Plan { iteration, rounds }
    }

    /// Writes the log of `rank`.
    pub fn rank(&self, rank: u32, content: Content<'_>, out: &mut impl Write) -> io::Result<()> {
        let mut writer = Writer::new(self, rank);
        let mut buffer = Vec::with_capacity(CHUNK + CHUNK / 4);
        match content {
            Content::Collectives(plan) => {
                writer.start_up(&mut buffer);
                for _ in 0..plan.rounds {
                    for operation in &plan.iteration.operations {
                        writer.operation(operation, &mut buffer);
                    }
                    spill(&mut buffer, CHUNK, out)?;
                }
                writer.shut_down(&mut buffer);
            }
            Content::Init(bytes) => {
                let block = writer.setup.communicators(&writer.groups, true);
                let mut written = 0;
                writer.setup.process(true, &mut buffer);
                for round in 0.. {
                    let before = buffer.len();
                    block.render(self.seed ^ round, &mut buffer);
                    written += (buffer.len() - before) as u64;
                    spill(&mut buffer, CHUNK, out)?;
                    if written >= bytes {
                        break;
                    }
                }
            }
        }
        spill(&mut buffer, 0, out)
    }

    /// Writes one log that all ranks share, their lines mixed as a common pipe mixes them.
    pub fn interleaved(&self, plan: &Plan, out: &mut impl Write) -> io::Result<()> {
        let mut writers: Vec<Writer> = (0..self.ranks).map(|rank| Writer::new(self, rank)).collect();
        let mut buffer = Vec::with_capacity(CHUNK + CHUNK / 4);
        let blocks: Vec<Vec<u8>> = writers.iter_mut().map(Writer::start_up_text).collect();
        let mut lines: Vec<_> = blocks.iter().map(|b| b.split_inclusive(|&c| c == b'\n')).collect();
        let mut open = lines.len();
        while open > 0 {
            open = lines.iter_mut().filter_map(Iterator::next).map(|line| buffer.extend_from_slice(line)).count();
            spill(&mut buffer, CHUNK, out)?;
        }
        for _ in 0..plan.rounds {
            for (i, operation) in plan.iteration.operations.iter().enumerate() {
                // Ranks of a healthy job run a little apart, never in the same order twice.
                let (early, late) = writers.split_at_mut(i % self.ranks.max(1) as usize);
                late.iter_mut().chain(early).for_each(|writer| writer.operation(operation, &mut buffer));
                spill(&mut buffer, CHUNK, out)?;
            }
        }
        for writer in &writers {
            writer.shut_down(&mut buffer);
        }
        spill(&mut buffer, 0, out)
    }
}

impl Writer {
    fn new(corpus: &Corpus, rank: u32) -> Self {
        let groups = groups(corpus, rank);
        let setup = Setup::new(corpus, rank);
        let end = if corpus.rccl { format!(" task 0 globalrank {rank}") } else { String::new() };
        let tails = groups.iter().map(|g| format!(" comm 0x{:x} [nranks={}] stream 0x{:x}{end}\n", g.comm, g.members.len(), g.stream).into_bytes()).collect();
        let diverge_at = corpus.diverge.filter(|d| d.0 == rank).map(|d| d.1);
        let third: &[u8] = if corpus.rccl { b" acc (nil)" } else { b"" };
        Self { header: setup.header(0).into_bytes(), setup, groups, tails, third, issued: 0, diverge_at }
    }

    fn start_up(&mut self, out: &mut Vec<u8>) {
        self.setup.process(false, out);
        self.setup.communicators(&self.groups, false).render(0, out);
    }

    fn start_up_text(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        self.start_up(&mut text);
        text
    }

    fn operation(&mut self, operation: &Operation, out: &mut Vec<u8>) {
        self.issued += 1;
        let index = operation.group.min(self.groups.len() - 1);
        let group = &mut self.groups[index];
        let odd = self.diverge_at == Some(self.issued);
        operation.render(odd, &self.header, group.issued, (group.buffers, self.third), &self.tails[index], out);
        group.issued += 1;
    }

    fn shut_down(&self, out: &mut Vec<u8>) {
        self.groups.iter().rev().for_each(|group| self.setup.destroy(group, out));
    }
}

/// The communicators of `rank`: all ranks, its tensor-parallel and its data-parallel group.
fn groups(corpus: &Corpus, rank: u32) -> Vec<Group> {
    let n = corpus.ranks;
    let tensor = [4, 2].into_iter().find(|t| n.is_multiple_of(*t) && n > *t).unwrap_or(1);
    let mut sets: Vec<Vec<u32>> = vec![(0..n).collect()];
    if tensor > 1 {
        let first = rank / tensor * tensor;
        sets.push((first..first + tensor).collect());
        sets.push((rank % tensor..n).step_by(tensor as usize).collect());
    }
    let group = |(kind, members): (usize, Vec<u32>)| {
        let shared = mix(corpus.seed, (kind as u64) << 32 | u64::from(members[0]));
        let own = mix(shared, u64::from(rank) + 1);
        Group {
            me: members.iter().position(|m| *m == rank).unwrap_or(0) as u32,
            members,
            comm: 0x5500_0000_0000 | own & 0xff_ffff_fff0,
            id: shared | 1 << 63,
            stream: 0x5500_0000_0000 | mix(own, 1) & 0xff_ffff_fff0,
            buffers: 0xf00_0000_0000 | mix(own, 2) & 0x7f_ffff_f000,
            issued: 0,
        }
    };
    sets.into_iter().enumerate().map(group).collect()
}

/// Hands `buffer` on once it holds more than `limit` bytes.
fn spill(buffer: &mut Vec<u8>, limit: usize, out: &mut impl Write) -> io::Result<()> {
    if buffer.len() > limit {
        out.write_all(buffer)?;
        buffer.clear();
    }
    Ok(())
}

/// A number that looks random and follows from `a` and `b` (splitmix64).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
