//! What one process said of one communicator.

use super::{Sample, Sequence};
use crate::event::Stage;
use std::sync::Arc;

/// Most communicators of one process.
pub(super) const MAX_COMMS: usize = 128;

/// Most distinct connections kept per communicator and process.
pub const MAX_CHANNELS: usize = 512;

/// A communicator as one process saw it. Absent facts are `None`; `ptr` 0 means that its address was not printed.
#[derive(Debug, Clone, Default)]
pub struct CommLog {
    /// Stream that tells of it.
    pub stream: u32,
    /// Local address.
    pub ptr: u64,
    /// Thread that initialises it.
    pub tid: u32,
    /// Device of the header.
    pub dev: Option<u16>,
    /// Id that is equal on all ranks.
    pub comm_id: Option<u64>,
    /// Rank in it.
    pub rank: Option<u32>,
    /// Its size.
    pub nranks: Option<u32>,
    /// CUDA or HIP device.
    pub cuda_dev: Option<u32>,
    /// NVML device.
    pub nvml_dev: Option<u32>,
    /// PCI bus id, hex digits.
    pub bus_id: Option<String>,
    /// Parent of a split.
    pub parent: Option<u64>,
    /// Colour of a split.
    pub color: Option<i64>,
    /// NCCL's count of nodes.
    pub nnodes: Option<u32>,
    /// Ranks on this node.
    pub local_ranks: Option<u32>,
    /// Stages that were seen, one bit each in the order of [`Stage`].
    pub stages: u32,
    /// First record.
    pub first: Option<Arc<Sample>>,
    /// `Init START`
    pub start: Option<Arc<Sample>>,
    /// `Init COMPLETE`
    pub complete: Option<Arc<Sample>>,
    /// Destroy or abort: (aborted, record).
    pub end: Option<(bool, Arc<Sample>)>,
    /// Last record that belongs to it.
    pub last: Option<Arc<Sample>>,
    /// `Using network X` with its record.
    pub net: Option<(String, Arc<Sample>)>,
    /// Connections.
    pub channels: Vec<ChannelCount>,
    /// Calls.
    pub calls: Sequence,
}

/// One kind of connection between two ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelCount {
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// `send`, `receive` or `local` (P2P and SHM lines are printed by the sender only).
    pub direction: &'static str,
    /// Transport as printed: `P2P/CUMEM/read`, `NET/IB/0/GDRDMA`.
    pub via: String,
    /// Name of the network for NET; else empty.
    pub net: String,
    /// Channels.
    pub count: u32,
    /// First record.
    pub first: Arc<Sample>,
}

impl CommLog {
    /// Marks a stage as seen.
    pub fn see(&mut self, stage: Stage) {
        self.stages |= 1 << stage as u32;
    }

    /// Whether a stage was seen.
    pub fn saw(&self, stage: Stage) -> bool {
        self.stages & (1 << stage as u32) != 0
    }

    /// Whether it came to work: it was complete, or was used.
    pub fn stood(&self) -> bool {
        self.complete.is_some() || self.calls.len > 0
    }

    /// The furthest stage that was seen. Lazy connections after Init COMPLETE do not lower or raise it.
    pub fn stage(&self) -> Stage {
        Stage::ALL.into_iter().rev().find(|s| self.saw(*s)).unwrap_or(Stage::Loaded)
    }

    /// Whether any line shows that its rings or trees were connected.
    pub fn connected(&self) -> bool {
        self.saw(Stage::Connected)
    }
}
