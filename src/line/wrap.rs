//! Wrapper prefixes: what launchers, log drivers and people put in front of a line.

use super::Time;

/// What kind of number a wrapper's rank is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankHint {
    /// Rank in the whole job (`[rank3]:`, `srun -l`, `[1,3]<stdout>:`).
    Global(u32),
    /// Rank within its node or group (`[default3]:`, `Worker_TP3`).
    Local(u32),
}

/// What the wrappers of one record said. Hints only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wrap<'a> {
    /// Rank named by a wrapper.
    pub rank: Option<RankHint>,
    /// Process id named by a wrapper (Ray, vLLM, journald).
    pub pid: Option<u32>,
    /// Host, pod or node address named by a wrapper; empty if none.
    pub host: &'a [u8],
    /// What tells sources in one stream apart: actor, pod/container, compose service; empty if none.
    pub label: &'a [u8],
    /// The innermost time that stood in front of the text.
    pub time: Option<Time>,
    /// `N` of Ray's `[repeated Nx across cluster]`: other ranks said the same and are hidden.
    pub repeated: u32,
}
