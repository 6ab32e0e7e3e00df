//! Since when nothing happened that brings the job forward.

use crate::digest::Digest;
use std::time::{Duration, Instant};

/// Lines with which somebody says that it waits or tries again; they are no progress.
const BEATS: [&str; 13] = [
    "vllm.shm_wait",
    "vllm.core_wait",
    "tgi.shard_wait",
    "horovod.stall",
    "ray.placement_wait",
    "torch.heartbeat",
    "torch.store_retry",
    "torch.watchdog_work",
    "socket.connect_retry",
    "system.call_retry",
    "ib.modify_qp_retry",
    "launcher.rendezvous",
    "gloo.interface",
];

/// The clock of progress.
#[derive(Debug)]
pub struct Progress {
    events: u64,
    at: Instant,
}

impl Progress {
    /// The clock starts now.
    pub fn new(now: Instant) -> Self {
        Self { events: 0, at: now }
    }

    /// Looks whether the job came forward.
    pub fn update(&mut self, digest: &Digest, now: Instant) {
        let events: u64 = digest.streams.iter().map(|s| s.events).sum();
        let beats: u64 = digest.processes.iter().flat_map(|p| BEATS.iter().flat_map(|kind| p.ledger.of(kind))).map(|e| e.count).sum();
        let forward = events.saturating_sub(beats);
        if forward != self.events {
            *self = Self { events: forward, at: now };
        }
    }

    /// How long nothing came.
    pub fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }

    /// When progress was made last.
    pub fn at(&self) -> Instant {
        self.at
    }
}
