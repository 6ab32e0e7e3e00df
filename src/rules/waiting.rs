//! Is the job waiting, where, and over which local path? Shared by the rules of hangs.
//!
//! A log that simply ends proves nothing: the same last line stands in sound and in hung runs. Only what is collected
//! here counts as a sign, and a sign proves waiting, never its cause.

use super::finding::Evidence;
use super::query::{Ask, Hit, evidence};
use crate::digest::{CommLog, Entry, Sample};
use crate::event::Stage;
use crate::event::tables::{NCCL_STAGE_OVER, PROOF_OF_COLLECTIVE};
use crate::job::{Bus, Comm, Vantage};
use std::collections::{BTreeMap, BTreeSet};

/// Ring channels from which on a node is taken to have NVLink; PCIe cards get 2 to 8.
const NVLINK_CHANNELS: i64 = 16;

/// NCCL's P2P chunk where all GPUs of a node are joined by NVLink; over PCIe it is 131072.
const NVLINK_CHUNK: i64 = 524_288;

/// What torch's watchdog says of the first collective.
#[derive(Default)]
pub struct Watchdog<'a> {
    /// Records that say that not even the first collective ended.
    pub first: Vec<Hit<'a>>,
    /// Ranks that say so.
    pub ranks: BTreeSet<u32>,
    /// Some rank had completed collectives before: the path works.
    pub late: bool,
}

/// How the GPUs of one host reach each other in a communicator.
#[derive(Default)]
pub struct Local {
    /// One channel line for every pair that uses P2P.
    pub p2p: Vec<Link>,
    /// Pairs over shared memory.
    pub shm: Vec<Link>,
    /// Pairs of one host over the network.
    pub net: Vec<Link>,
}

/// A connection between two ranks.
pub struct Link {
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Transport as printed.
    pub via: String,
    /// Its first record.
    pub line: Evidence,
}

/// A framework's process stands where NCCL starts.
pub struct Tail<'a> {
    /// The line that is printed right before ncclCommInitRank.
    pub next: Hit<'a>,
    /// A beat that says that somebody waits.
    pub beat: Option<Hit<'a>>,
}

/// Reads the watchdog's records.
pub fn watchdog(ask: Ask<'_>) -> Watchdog<'_> {
    let mut out = Watchdog::default();
    let mut unsure = false;
    for hit in ask.any_of(&["torch.watchdog_status", "torch.dump_signal"]) {
        match hit.num("completed") {
            Some(n) if n < 0 => out.first.push(hit),
            Some(n) if n > 0 => out.late = true,
            _ => {}
        }
    }
    for hit in ask.hits("torch.watchdog_timeout") {
        match hit.num("seq") {
            Some(n) if n <= 1 => out.first.push(hit),
            Some(_) => unsure = true,
            None => {}
        }
    }
    out.late |= unsure && out.first.is_empty();
    out.ranks = out.first.iter().filter_map(|h| h.rank().or_else(|| h.num("pg_rank").and_then(|r| u32::try_from(r).ok()))).collect();
    out
}

/// Beats with which frameworks say that somebody waits.
pub fn beats(ask: Ask<'_>) -> Vec<Hit<'_>> {
    ask.any_of(&["vllm.shm_wait", "vllm.core_wait", "tgi.shard_wait", "horovod.stall", "jax.stuck"])
}

/// Seconds of silence of a live log, if long enough to count and at a place where waiting is not normal: a communicator
/// is being made. Behind that a model may load, compile or compute for long without a line.
pub fn silence(ask: Ask<'_>) -> Option<u64> {
    match ask.job.vantage {
        Vantage::Live { silent_micros, stall_micros } if silent_micros >= stall_micros && starting(ask) => Some(silent_micros / 1_000_000),
        _ => None,
    }
}

/// The last lines are the last word: nobody writes any more, or not for long enough to count.
pub fn has_stopped(ask: Ask<'_>) -> bool {
    match ask.job.vantage {
        Vantage::PostMortem => true,
        Vantage::Live { silent_micros, stall_micros } => silent_micros >= stall_micros,
    }
}

/// A rank is on its way to `Init COMPLETE`, or its framework stands right before.
fn starting(ask: Ask<'_>) -> bool {
    let open = |l: &CommLog| l.complete.is_none() && l.end.is_none() && l.stage() >= Stage::BootstrapInterface && l.stage() < Stage::Collective;
    ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| open(l))
        || ask.job.ranks.iter().any(|r| r.stage < Stage::Network && r.stage > Stage::Loaded)
        || framework_tail(ask).is_some()
}

/// Collectives have finished: a result, a later stage of the framework, a communicator that was closed in good order.
pub fn progressed(ask: Ask<'_>) -> bool {
    ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| finished_one(ask, e) || (NCCL_STAGE_OVER.contains(&e.kind.as_str()) && later(ask, e))))
        || ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| l.end.as_ref().is_some_and(|(aborted, _)| !aborted) || l.calls.len > 64)
}

/// The entry shows that a collective finished over the GPUs.
pub fn finished_one(ask: Ask<'_>, entry: &Entry) -> bool {
    PROOF_OF_COLLECTIVE.contains(&entry.kind.as_str()) && later(ask, entry)
}

/// vLLM's line of a message queue is printed by the executor and by workers before NCCL starts too, so it counts only
/// behind the line that comes right before NCCL. The other lines have one place.
fn later(ask: Ask<'_>, entry: &Entry) -> bool {
    if entry.kind != "vllm.mq_handle" {
        return true;
    }
    let executor = |s: &Sample| s.text.contains("(EngineCore") || s.text.contains("(APIServer");
    let stream = entry.first.at.stream;
    let start = ask.hits("vllm.nccl_version").iter().map(Hit::at).filter(|at| at.stream == stream).min();
    entry.samples.iter().chain([&entry.last]).any(|s| !executor(s) && start.is_some_and(|at| s.at > at))
}

/// Something failed with an error of its own, so that the job does not merely wait.
pub fn failed(ask: Ask<'_>) -> bool {
    const KINDS: [&str; 13] = [
        "init.backtrace",
        "init.group_backtrace",
        "init.fatal",
        "cuda.failure",
        "cuda.alloc_failed",
        "shm.error",
        "torch.nccl_error",
        "torch.cuda_error",
        "torch.oom",
        "rocm.ipc_failed",
        "rocm.illegal_state",
        "rocm.no_kernel",
        "nccl_tests.failure",
    ];
    ask.procs().any(|(_, p)| {
        p.log.ledger.iter().any(|e| {
            let own = e.kind.starts_with("app.") && !matches!(e.kind.as_str(), "app.collective_result" | "app.traceback" | "app.interrupted");
            let timeout = own && e.first.text.contains("imeout");
            KINDS.contains(&e.kind.as_str()) || (own && !timeout)
        })
    })
}

/// All ranks came through, nccl-tests printed the head of its table, and the log ends there: the first collective did
/// not end. Where lines of channels follow, the library connects late, and a paste is merely cut.
pub fn table_without_row(ask: Ask<'_>) -> Option<Hit<'_>> {
    let head = ask.hits("nccl_tests.table").into_iter().next_back()?;
    if !has_stopped(ask) || !ask.any_of(&["nccl_tests.row", "nccl_tests.done", "nccl_tests.failure"]).is_empty() {
        return None;
    }
    let at = head.entry.last.at;
    let lines = ask.job.streams.get(at.stream as usize)?.lines;
    (ask.all_complete() && lines.saturating_sub(at.line) <= 2).then_some(head)
}

/// The framework itself says that its ranks run on several machines.
pub fn said_to_span(ask: Ask<'_>) -> bool {
    ask.any_of(&["vllm.custom_ar_off", "sglang.custom_ar_off"]).iter().any(|h| h.text().contains("spans across nodes"))
        || ask.hits("vllm.nodes").iter().any(|h| h.num("count").is_some_and(|n| n > 1))
}

/// Ranks of a communicator that have a log.
pub fn present(comm: &Comm) -> BTreeSet<u32> {
    comm.members.iter().filter_map(|m| m.rank).collect()
}

/// All ranks of the communicator have a log.
pub fn is_whole(comm: &Comm) -> bool {
    comm.nranks.is_some_and(|n| n >= 2 && present(comm).len() >= n as usize)
}

/// The framework line behind which ncclCommInitRank and the warm-up collective come is the last stage that was seen.
pub fn framework_tail(ask: Ask<'_>) -> Option<Tail<'_>> {
    let next = ask.hits("vllm.nccl_version").into_iter().next_back()?;
    if progressed(ask) || !has_stopped(ask) {
        return None;
    }
    let beat = ask.hits("vllm.shm_wait").into_iter().find(|b| b.at() > next.at());
    let stream = ask.job.streams.get(next.at().stream as usize)?;
    // Unknown lines behind it may be later stages that no row describes.
    (beat.is_some() || stream.lines.saturating_sub(next.entry.last.at.line) <= 2).then_some(Tail { next, beat })
}

/// The communicator's ranks all stand while they connect their channels: none completed, none connected, and the last
/// channel of each was printed, so that the end of the log is no cut.
pub fn stopped_connecting(ask: Ask<'_>, comm: &Comm) -> bool {
    is_whole(comm) && has_stopped(ask) && {
        let rings = rings(ask);
        comm.members.iter().all(|m| connecting(ask.job.comm_log(m), rings))
    }
}

fn connecting(log: &CommLog, rings: Option<i64>) -> bool {
    if log.complete.is_some() || log.end.is_some() || log.connected() || !log.saw(Stage::Connecting) {
        return false;
    }
    let printed = log.channels.iter().map(|c| i64::from(c.count)).max().unwrap_or(0);
    rings.is_none_or(|n| printed >= n)
}

/// Number of rings, as rank 0 prints it (`Channel 00/04`).
fn rings(ask: Ask<'_>) -> Option<i64> {
    ask.hits("init.ring_order").iter().filter_map(|h| h.num("max")).max()
}

/// All processes stand at the same stage of the bootstrap: nobody came further, and nothing failed.
pub fn stopped_in_bootstrap(ask: Ask<'_>) -> Option<Vec<Evidence>> {
    if !has_stopped(ask) {
        return None;
    }
    let mut lines = Vec::new();
    let mut logs = 0;
    for (_, proc) in ask.procs().filter(|(_, p)| p.nccl && !(p.host.is_empty() && p.log.comms.is_empty())) {
        let [log] = proc.log.comms.as_slice() else { return None };
        let last = log.last.as_ref()?;
        if !matches!(log.stage(), Stage::Network | Stage::InitStart) || proc.log.last.at.line > last.at.line + 1 {
            return None;
        }
        logs += 1;
        lines.push(evidence(ask.job, log.rank.or(proc.rank), last));
    }
    (logs >= 2).then_some(lines)
}

/// How the ranks of one host reach each other.
pub fn local(ask: Ask<'_>, comm: &Comm) -> Local {
    let mut hosts: BTreeMap<u32, &str> = BTreeMap::new();
    for m in &comm.members {
        if let Some(rank) = m.rank {
            hosts.insert(rank, ask.job.procs[m.proc].host.as_str());
        }
    }
    let mut seen = BTreeSet::new();
    let mut out = Local::default();
    for m in &comm.members {
        for c in &ask.job.comm_log(m).channels {
            if c.from == c.to || !seen.insert((c.from, c.to, c.via.clone())) {
                continue;
            }
            let list = if c.via.starts_with("P2P/MNNVL") || c.via.starts_with("COLLNET") {
                continue;
            } else if c.via.starts_with("P2P") {
                &mut out.p2p
            } else if c.via.starts_with("NET/") {
                let same = hosts.get(&c.from).zip(hosts.get(&c.to)).is_some_and(|(a, b)| a == b && !a.is_empty());
                if !same || comm.spans_nodes {
                    continue;
                }
                &mut out.net
            } else {
                &mut out.shm
            };
            list.push(Link { from: c.from, to: c.to, via: c.via.clone(), line: evidence(ask.job, m.rank, &c.first) });
        }
    }
    out
}

/// Names of the job's GPUs, as tools and tests print them.
pub fn gpu_names(ask: Ask<'_>) -> Vec<&str> {
    let told = ask.any_of(&["gpu.name", "nccl_tests.rank", "rocm.gpu_name"]);
    let facts = ask.job.facts.nodes.iter().flat_map(|n| &n.facts.gpus).map(|g| g.name.as_str());
    told.iter().filter_map(|h| h.entry.first.get("name")).chain(facts).filter(|n| !n.is_empty()).collect()
}

/// The GPUs are joined by NVLink, as far as any line tells.
pub fn nvlink(ask: Ask<'_>) -> bool {
    const MODELS: [&str; 10] = ["SXM", "NVL", "HGX", "H200", "B200", "B300", "GH200", "H100 80GB HBM3", "H800", "H20"];
    let named = gpu_names(ask).iter().any(|n| MODELS.iter().any(|m| n.contains(m)));
    let number = |kind: &str, field: &str, test: &dyn Fn(i64) -> bool| ask.hits(kind).iter().filter_map(|h| h.num(field)).any(test);
    // `/read` is chosen for Ampere over NVLink only.
    let by_channel = ask.comms().flat_map(|c| ask.views(c)).flat_map(|(_, l)| &l.channels).any(|c| c.via.contains("/read") || c.via.contains("MNNVL"));
    named
        || by_channel
        || ask.has("nvls.comm")
        || ask.hits("init.nvls_support").iter().any(|h| h.get("text") == Some("available"))
        || number("init.channels", "nvls", &|n| n > 0)
        || number("init.channels", "coll", &|n| n >= NVLINK_CHANNELS)
        || number("init.ring_order", "max", &|n| n >= NVLINK_CHANNELS)
        || number("init.p2p_chunksize", "size", &|n| n >= NVLINK_CHUNK)
        || ask.hits("init.pattern").iter().any(|h| h.get("intra").is_some_and(|t| t.contains("NVL")))
        || ask.hits("host.topo_row").iter().any(|h| h.text().split_whitespace().any(is_nvlink_cell))
}

/// `NV4`, `NV18` in the table of `nvidia-smi topo -m`.
fn is_nvlink_cell(word: &str) -> bool {
    word.strip_prefix("NV").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// P2P between local GPUs was switched off by its user: the variable and its record.
pub fn p2p_switched_off(ask: Ask<'_>) -> Option<super::query::SettingHit<'_>> {
    ask.switched_on("NCCL_P2P_DISABLE").or_else(|| ask.setting_where("NCCL_P2P_LEVEL", |v| v == "LOC" || v == "0"))
}

/// `0000:41:00.0`, `41:00.0`, `0x41`, `41000`: one number for one device, domain first.
pub fn bus_number(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(':');
    if let Some(hex) = text.strip_prefix("0x") {
        // nccl-tests up to 2.13 print the bus alone.
        return u64::from_str_radix(hex, 16).ok().map(|n| if n <= 0xff { n << 12 } else { n });
    }
    let digits: String = text.chars().filter(|c| *c != ':' && *c != '.').collect();
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let value = u64::from_str_radix(&digits, 16).ok()?;
    // `0000:2c:00` lacks the function.
    Some(if text.matches(':').count() == 2 && !text.contains('.') { value << 4 } else { value })
}

/// Bus ids of the job's GPUs as numbers, with their ranks.
pub fn gpu_buses(ask: Ask<'_>) -> BTreeMap<u64, Option<u32>> {
    let mut buses = BTreeMap::new();
    for (m, log) in ask.comms().flat_map(|c| ask.views(c)) {
        if let Some(bus) = log.bus_id.as_deref().and_then(bus_number) {
            buses.insert(bus, m.rank);
        }
    }
    for hit in ask.hits("nccl_tests.rank") {
        if let Some(bus) = hit.get("bus").and_then(bus_number) {
            buses.entry(bus).or_insert_with(|| hit.num("rank").and_then(|r| u32::try_from(r).ok()));
        }
    }
    buses
}

/// Buses of the GPUs of the only host: those of the job, else those that its facts list.
pub fn local_buses(ask: Ask<'_>) -> Vec<Bus> {
    let mut numbers: Vec<u64> = gpu_buses(ask).into_keys().collect();
    if numbers.is_empty() {
        numbers = super::facts::single(ask).iter().flat_map(|n| &n.facts.gpus).filter_map(|g| bus_number(&g.bus_id)).collect();
    }
    numbers.iter().filter_map(|n| Some((u32::try_from(n >> 20).ok()?, u8::try_from(n >> 12 & 0xff).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_device_has_one_number() {
        for text in ["00000000:41:00.0", "0000:41:00.0", "41:00.0", "41000", "0x41", "0000:41:00"] {
            assert_eq!(bus_number(text), Some(0x41000), "{text}");
        }
        assert_eq!(bus_number("x"), None);
        assert!(is_nvlink_cell("NV12"));
        assert!(!is_nvlink_cell("NVIDIA"));
    }
}
