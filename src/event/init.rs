//! Life cycle of a communicator. Source: `src/init.cc`, NCCL 2.4 … 2.32 and RCCL: `[[Rank r] ][API ]comm %p rank %d nranks %d
//! key value … - Init START|Init COMPLETE|Destroy COMPLETE|Abort START|Abort COMPLETE|Revoke …`, and the layout line
//! `comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL %d` (2.20.3+).

use super::shape::Stage;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// What happened to the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `Init START`
    Start,
    /// Up to 2.3: `[comm 0x… ]rank r nranks n` before the bootstrap, without words.
    Named,
    /// `Init COMPLETE`
    Complete,
    /// The layout line with nNodes and localRanks.
    Layout,
    /// `Destroy COMPLETE`
    Destroy,
    /// `Abort START` or `Abort COMPLETE`
    Abort,
}

impl Phase {
    /// The stage that it proves.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::Start | Self::Named => Some(Stage::InitStart),
            Self::Complete => Some(Stage::InitComplete),
            Self::Layout => Some(Stage::Topology),
            Self::Destroy | Self::Abort => None,
        }
    }
}

/// One life cycle record. Absent keys are `None`.
#[derive(Debug, Clone, Copy)]
pub struct Init<'a> {
    /// What happened.
    pub phase: Phase,
    /// API that was called (`ncclCommInitRank`, RCCL's `…_impl`); empty before 2.21.
    pub api: &'a [u8],
    /// Local address of the communicator.
    pub comm: u64,
    /// Rank in the communicator.
    pub rank: Option<u32>,
    /// Its size.
    pub nranks: Option<u32>,
    /// CUDA or HIP device.
    pub cuda_dev: Option<u32>,
    /// NVML device.
    pub nvml_dev: Option<u32>,
    /// PCI bus id as hex digits; empty if absent.
    pub bus_id: &'a [u8],
    /// Id that is equal on all ranks (2.16.2+); 0 counts as absent.
    pub comm_id: Option<u64>,
    /// Parent communicator of a split.
    pub parent: Option<u64>,
    /// Split colour.
    pub color: Option<i64>,
    /// NCCL's count of nodes (layout line).
    pub nnodes: Option<u32>,
    /// Ranks on this node (layout line).
    pub local_ranks: Option<u32>,
}

/// Hex number with or without `0x`.
pub(super) fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    (!digits.is_empty() && digits.len() <= 16).then(|| digits.iter().try_fold(0u64, |n, d| Some((n << 4) | u64::from((*d as char).to_digit(16)?))))?
}

pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

static COMM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("comm 0x"));

/// Reads a life cycle message.
pub fn parse(msg: &[u8]) -> Option<Init<'_>> {
    if msg.starts_with(b"rank ") {
        return named(msg);
    }
    let window = &msg[..msg.len().min(96)];
    let at = COMM.find(window)?;
    if at > 0 && msg[at - 1] != b' ' {
        return None;
    }
    let api = msg[..at].trim_ascii();
    let api = if api.starts_with(b"[Rank ") { api.iter().position(|b| *b == b']').map_or(api, |p| api[p + 1..].trim_ascii()) } else { api };
    if api.contains(&b' ') {
        return None;
    }
    let mut words = msg[at..].split(|b| *b == b' ').filter(|w| !w.is_empty());
    words.next();
    let comm = hex(words.next()?)?;
    let mut init = Init {
        phase: Phase::Layout,
        api,
        comm,
        rank: None,
        nranks: None,
        cuda_dev: None,
        nvml_dev: None,
        bus_id: b"",
        comm_id: None,
        parent: None,
        color: None,
        nnodes: None,
        local_ranks: None,
    };
    let mut phase = None;
    while let Some(word) = words.next() {
        match word {
            b"-" => phase = phase_of(words.next(), words.next()),
            b"Init" => phase = phase_of(Some(word), words.next()),
            b"rank" => init.rank = number(words.next()?),
            b"nranks" | b"nRanks" => init.nranks = number(words.next()?),
            b"cudaDev" => init.cuda_dev = number(words.next()?),
            b"nvmlDev" => init.nvml_dev = number(words.next()?),
            b"busId" => init.bus_id = words.next()?,
            b"commId" => init.comm_id = hex(words.next()?).filter(|id| *id != 0),
            b"parent" => init.parent = hex(words.next()?),
            b"color" => init.color = number(words.next()?),
            // Up to 2.30 the dash of a split's START sticks to the key: `key 0- Init START`.
            b"key" if words.next()?.ends_with(b"-") => phase = phase_of(words.next(), words.next()),
            b"nNodes" => init.nnodes = number(words.next()?),
            b"localRanks" => init.local_ranks = number(words.next()?),
            _ => {}
        }
    }
    init.phase = match phase {
        Some(p) => p,
        None if init.nnodes.is_some() => Phase::Layout,
        None if init.rank.is_some() && init.nranks.is_some() && init.cuda_dev.is_none() && init.bus_id.is_empty() => Phase::Named,
        None => return None,
    };
    Some(init)
}

/// `rank 0 nranks 4` and nothing else (2.3).
fn named(msg: &[u8]) -> Option<Init<'_>> {
    let mut words = msg.split(|b| *b == b' ').filter(|w| !w.is_empty());
    let (Some(b"rank"), Some(rank), Some(b"nranks"), Some(nranks), None) = (words.next(), words.next(), words.next(), words.next(), words.next()) else { return None };
    let (rank, nranks) = (number(rank)?, number(nranks)?);
    Some(Init {
        phase: Phase::Named,
        api: b"",
        comm: 0,
        rank: Some(rank),
        nranks: Some(nranks),
        cuda_dev: None,
        nvml_dev: None,
        bus_id: b"",
        comm_id: None,
        parent: None,
        color: None,
        nnodes: None,
        local_ranks: None,
    })
}

fn phase_of(what: Option<&[u8]>, state: Option<&[u8]>) -> Option<Phase> {
    let state = state?;
    Some(match (what?, state) {
        (b"Init", s) if s.starts_with(b"START") => Phase::Start,
        (b"Init", s) if s.starts_with(b"COMPLETE") => Phase::Complete,
        (b"Destroy", s) if s.starts_with(b"COMPLETE") => Phase::Destroy,
        (b"Abort" | b"Revoke", _) => Phase::Abort,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_the_line() {
        let cases: [(&str, Phase, Option<u64>); 13] = [
            ("comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE", Phase::Complete, None),
            ("comm 0x7f1 rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE", Phase::Complete, None),
            ("comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START", Phase::Start, Some(0xabc)),
            ("ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START", Phase::Start, Some(0xabc)),
            ("[Rank 0] ncclCommInitRankConfig comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START", Phase::Start, Some(0xabc)),
            ("ncclCommSplit comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 parent 0x7e0 color 1 key 0- Init START", Phase::Start, None),
            ("comm 0x7f1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0", Phase::Layout, None),
            ("comm 0x7f1 rank 1 nranks 2 cudaDev 1 busId 9000 localSize 384 used 93412 bytes on core 4 - Init COMPLETE", Phase::Complete, None),
            ("comm 0x7f1 rank 0 nranks 2", Phase::Named, None),
            ("comm 0x7f1 rank 0 nranks 2 cudaDev 0 busId 1a000 - Destroy COMPLETE", Phase::Destroy, None),
            // RCCL 2.27 … 2.30: the names of the calls end in `_impl`, a split counts itself.
            ("[Rank 0] ncclCommInitAll_impl comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId b000 commId 0xabc - Init START", Phase::Start, Some(0xabc)),
            ("ncclCommInitRankConfig_impl comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0xabc - Init COMPLETE", Phase::Complete, Some(0xabc)),
            ("ncclCommSplit_impl comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 parent 0x7e0 splitCount 1 color 1 key 0- Init START", Phase::Start, None),
        ];
        for (text, phase, id) in cases {
            let init = parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((init.phase, init.comm_id, init.comm, init.nranks), (phase, id, 0x7f1, Some(2)), "{text}");
        }
        assert!(parse(b"Using network IB").is_none());
        assert!(parse(b"comm:0x7f1, nRanks:2, nNodes:1, coll channels:2 collnet channels:2, nvls channels:0, p2p channels:2").is_none());
        assert!(parse(b"Channel 00/0 : 0[3000] -> 1[9000] via P2P/IPC comm 0x5a3 nRanks 02").is_none());
    }
}
