//! Start-up of a rank in the wording and order of NCCL 2.27.

use super::{Corpus, Group, PER_HOST, mix};
use std::fmt::Write as _;

/// PCI bus ids of a host's GPUs.
const BUS: [&str; 8] = ["1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000"];
/// Channels of every communicator.
const CHANNELS: u32 = 16;

/// Who this rank is.
pub struct Setup {
    host: String,
    address: String,
    pid: u32,
    rank: u32,
    device: u32,
}

/// Text in which the handle and the identity of communicators are replaced at every use, so that one rendering
/// serves any number of communicators.
pub struct Block {
    text: Vec<u8>,
    /// Where 12 (handle) or 16 (identity) hex digits stand, and what stands there at first.
    spots: Vec<(usize, usize, u64)>,
}

impl Setup {
    pub fn new(corpus: &Corpus, rank: u32) -> Self {
        let host = rank / PER_HOST;
        let pid = 2000 + (mix(corpus.seed, u64::from(rank)) % 30_000) as u32;
        let address = format!("10.20.{}.{}", host / 250, 1 + host % 250);
        Self { host: format!("gpu{:03}", host + 1), address, pid, rank, device: rank % PER_HOST }
    }

    /// The header of an INFO record of this process; `thread` counts from its main thread.
    pub fn header(&self, thread: u32) -> String {
        format!("{}:{}:{} [{}] NCCL INFO ", self.host, self.pid, self.pid + thread, self.device)
    }

    /// What the process prints once, before its first communicator.
    pub fn process(&self, detail: bool, out: &mut Vec<u8>) {
        let (main, task) = (self.header(0), self.header(412));
        let mut text = String::new();
        let mut say = |header: &str, message: &str| {
            let _ = writeln!(text, "{header}{message}");
        };
        say(&main, "NCCL_SOCKET_IFNAME set by environment to eth0");
        say(&main, &format!("Bootstrap: Using eth0:{}<0>", self.address));
        say(&main, "cudaDriverVersion 12090");
        say(&main, "NCCL version 2.27.7+cuda12.9");
        say(&task, "NET/Plugin: Could not find: libnccl-net.so. ");
        say(&task, "NCCL_IB_HCA set to mlx5");
        for i in (0..PER_HOST).filter(|_| detail) {
            say(
                &task,
                &format!(
                    "NET/IB: [{i}] mlx5_{i}:uverbs{i}:1/RoCE provider=Mlx5 speed=400000 context=0x5581{:08x} pciPath=/sys/devices/pci0000:{:02x}/0000:{:02x}:01.0/0000:{:02x}:00.0 ar=0",
                    i * 0x9300,
                    0x15 + 16 * i,
                    0x15 + 16 * i,
                    0x18 + 16 * i
                ),
            );
            say(&task, &format!("NET/IB : Made virtual device [{i}] name=mlx5_{i} speed=400000 ndevs=1"));
        }
        let list = join((0..PER_HOST).map(|i| format!("[{i}]mlx5_{i}:1/RoCE ")));
        say(&task, &format!("NET/IB : Using {list}[RO]; OOB eth0:{}<0>", self.address));
        say(&task, "Initialized NET plugin IB");
        out.extend_from_slice(text.as_bytes());
    }

    /// The start-up of `groups`, one after the other.
    pub fn communicators(&self, groups: &[Group], detail: bool) -> Block {
        let mut text = String::new();
        for (i, group) in groups.iter().enumerate() {
            self.communicator(group, 412 + 40 * i as u32, detail, &mut text);
        }
        Block::new(text.into_bytes(), groups)
    }

    fn communicator(&self, group: &Group, thread: u32, detail: bool, text: &mut String) {
        let task = self.header(thread);
        let local: Vec<u32> = group.members.iter().copied().filter(|m| m / PER_HOST == self.rank / PER_HOST).collect();
        let mut hosts: Vec<u32> = group.members.iter().map(|m| m / PER_HOST).collect();
        hosts.dedup();
        let (n, me, device, bus) = (group.members.len(), group.me, self.device, BUS[self.device as usize]);
        let name = format!("ncclCommInitRankConfig comm 0x{:012x} rank {me} nranks {n} cudaDev {device} nvmlDev {device} busId {bus} commId 0x{:016x}", group.comm, group.id);
        let mut say = |message: &str| {
            let _ = writeln!(text, "{task}{message}");
        };
        say("Assigned NET plugin IB to comm");
        say("Using network IB");
        say(&format!("DMA-BUF is available on GPU device {device}"));
        say(&format!("{name} - Init START"));
        say("Bootstrap timings total 0.021840 (create 0.000031, send 0.000152, recv 0.004418, ring 0.001207, delay 0.000001)");
        if detail {
            graph(&mut say);
        }
        say(&format!("Setting affinity for GPU {device} to 0-55"));
        say(&format!("NVLS multicast support is available on dev {device} (NVLS_NCHANNELS 16)"));
        let local_rank = local.iter().position(|m| *m == self.rank).unwrap_or(0);
        say(&format!("comm 0x{:012x} rank {me} nRanks {n} nNodes {} localRanks {} localRank {local_rank} MNNVL 0", group.comm, hosts.len(), local.len()));
        if me == 0 {
            let ring = join((0..n.min(24)).map(|r| format!(" {r}")));
            (0..CHANNELS).for_each(|c| say(&format!("Channel {c:02}/{CHANNELS:02} :{ring}{}", if n > 24 { " ..." } else { "" })));
        }
        let up = if me == 0 { -1 } else { me as i64 - 1 };
        let down = if me as usize + 1 == n { -1 } else { me as i64 + 1 };
        let trees = join((0..CHANNELS).map(|c| format!(" [{c}] {down}/-1/-1->{me}->{up}")));
        say(&format!("Trees{trees}"));
        say("P2P Chunksize set to 524288");
        say("PROFILER/Plugin: Could not find: libnccl-profiler.so. ");
        say("Check P2P Type isAllDirectP2p 1 directMode 0");
        say(&format!("[Proxy Service] Device {device} CPU core {}", device * 12 + 3));
        say(&format!("[Proxy Service UDS] Device {device} CPU core {}", device * 12 + 5));
        say("threadThresholds 8/8/64 | 64/8/64 | 512 | 512");
        say(&format!("{CHANNELS} coll channels, {CHANNELS} collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer"));
        say("CC Off, workFifoBytes 1048576");
        say("TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.");
        say(&format!("{name} - Init COMPLETE"));
        say(&format!(
            "Init timings - ncclCommInitRankConfig: rank {me} nranks {n} total 1.42 (kernels 0.21, alloc 0.05, bootstrap 0.02, allgathers 0.01, topo 0.98, graphs 0.07, connections 0.06, rest 0.02)"
        ));
        channels(group, &mut say);
        say("Connected all rings, use ring PXN 0 GDR 1");
    }

    /// The last line of a communicator.
    pub fn destroy(&self, group: &Group, out: &mut Vec<u8>) {
        let line = format!(
            "{}comm 0x{:x} rank {} nranks {} cudaDev {} busId {} - Destroy COMPLETE\n",
            self.header(0),
            group.comm,
            group.me,
            group.members.len(),
            self.device,
            BUS[self.device as usize]
        );
        out.extend_from_slice(line.as_bytes());
    }
}

impl Block {
    fn new(text: Vec<u8>, groups: &[Group]) -> Self {
        let mut spots = Vec::new();
        for group in groups {
            for (digits, value) in [(format!("{:012x}", group.comm), group.comm), (format!("{:016x}", group.id), group.id)] {
                let width = digits.len();
                spots.extend(text.windows(width).enumerate().filter(|(_, w)| *w == digits.as_bytes()).map(|(at, _)| (at, width, value)));
            }
        }
        Self { text, spots }
    }

    /// Appends the text; round 0 leaves it as it is, any other gives its communicators a new handle and identity,
    /// the latter the same on every member.
    pub fn render(&self, round: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.text);
        for &(at, width, value) in self.spots.iter().filter(|_| round != 0) {
            // The leading digits stay, so that a handle still looks like an address of this process.
            let fresh = value ^ (mix(round, 11) & 0xff_ffff_fff0);
            out[start + at..start + at + width].copy_from_slice(format!("{fresh:0width$x}").as_bytes());
        }
    }
}

/// Topology as the GRAPH subsystem shows it.
fn graph(say: &mut impl FnMut(&str)) {
    say("=== System : maxBw 360.0 totalBw 360.0 ===");
    say("CPU/0-0 (1/1/3)");
    for (i, bus) in BUS.iter().enumerate() {
        say(&format!("+ PCI[48.0] - PCI/0-{:x}000 (15b3197315b31973)", 0x11 + i * 8));
        say(&format!("              + PCI[48.0] - GPU/0-{bus} ({i})"));
        say("                            + NVL[360.0] - NVS/0");
        say(&format!("              + PCI[48.0] - NIC/0-{:x}000", 0x12 + i * 8));
        say(&format!("                            + NET[50.0] - NET/0-{i} ({i}/a088c20300{i:02x}0001/1/50.000000)"));
        say(&format!("NET/IB : GPU Direct RDMA Enabled for HCA {i} 'mlx5_{i}'"));
        say(&format!("GPU Direct RDMA Enabled for GPU {i} / HCA {i} (distance 4 <= 5), read 0 mode Default"));
    }
    say("==========================================");
    let paths = join(BUS.iter().map(|b| format!("GPU/0-{b} (2/360.0/NVL) ")));
    for bus in BUS {
        say(&format!("GPU/0-{bus} :{paths}NVS/0 (1/360.0/NVL) CPU/0-0 (3/24.0/PHB) "));
    }
    say("Pattern 4, crossNic 0, nChannels 16, bw 48.000000/48.000000, type NVL/PIX, sameChannels 0");
    let order = join(BUS.iter().map(|b| format!("GPU/0-{b} ")));
    (0..CHANNELS).for_each(|c| say(&format!(" {c} : NET/0-{} {order}NET/0-{}", c % 8, c % 8)));
}

/// The transports of one rank's connections.
fn channels(group: &Group, say: &mut impl FnMut(&str)) {
    let n = group.members.len();
    let (me, next, prev) = (group.me as usize, (group.me as usize + 1) % n, (group.me as usize + n - 1) % n);
    let (dev, host) = (|i: usize| group.members[i] % PER_HOST, |i: usize| group.members[i] / PER_HOST);
    if n < 2 {
        return;
    }
    for c in (0..CHANNELS).filter(|_| host(prev) != host(me)) {
        say(&format!("Channel {c:02}/0 : {prev}[{}] -> {me}[{}] [receive] via NET/IB/{}/GDRDMA", dev(prev), dev(me), c % 8));
    }
    for c in 0..CHANNELS {
        let (from, to) = (dev(me), dev(next));
        if host(next) == host(me) {
            say(&format!("Channel {c:02}/0 : {me}[{from}] -> {next}[{to}] via P2P/CUMEM"));
        } else {
            say(&format!("Channel {c:02}/0 : {me}[{from}] -> {next}[{to}] [send] via NET/IB/{}/GDRDMA", c % 8));
        }
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}
