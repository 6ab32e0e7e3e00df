//! Digest: what each process did, folded from the events of a stream in order. Bounded and mergeable.
//!
//! [`map()`] is stateless and runs in parallel over blocks; [`Folder`] is sequential per stream and holds everything
//! that depends on order. A [`Digest`] is the union of streams; nothing here knows a cause.

mod comm;
mod communicators;
pub mod disk;
mod facts;
mod fit;
mod fold;
mod ledger;
mod map;
mod memory;
mod order;
mod parsed;
mod ras;
mod sample;
mod sequence;
mod union;
mod visit;

pub use comm::{ChannelCount, CommLog};
pub use facts::*;
pub use fold::Folder;
pub use ledger::{Entry, Ledger, MAX_SAMPLES};
pub use map::{map, map_with};
pub use memory::Memory;
pub use parsed::{Again, Call, Item, Parsed, Repeat, SeenSource, Spot};
pub use sample::template;
pub use sequence::{Checkpoint, KEPT_CALLS, KeptCall, Peer, Sequence, roll};
pub use union::{Part, name_apart, union};

use crate::event::Library;
use crate::line::{Level, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Longest text that a sample keeps, in bytes.
pub const MAX_TEXT: usize = 600;

/// Everything the later stages know of the input.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    /// The inputs, in the order of their ids.
    pub streams: Vec<StreamInfo>,
    /// The processes of all streams, ordered by (stream, first record).
    pub processes: Vec<Process>,
    /// The user's patterns that were looked for: (kind, format).
    pub patterns: Vec<(String, String)>,
}

/// One input stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamInfo {
    /// Path as given (or `-`), on the machine that read it.
    pub path: String,
    /// Name of the digest that tells of it; empty if it was read here.
    pub from: String,
    /// Decoded bytes.
    pub bytes: u64,
    /// Line ends, plus one for a last line without its own.
    pub lines: u64,
    /// Records with an NCCL header.
    pub nccl_lines: u64,
    /// Records that were recognised as any event.
    pub events: u64,
    /// What went wrong while reading, if anything did; the rest was analysed.
    pub problem: Option<String>,
    /// Latest time that any line carried.
    pub last_time: Option<Time>,
    /// The stream's last non-empty line.
    pub last: Option<Arc<Sample>>,
    /// Facts of hosts that the stream shows. `Job::build` moves them to the nodes.
    pub facts: Vec<HostFacts>,
}

/// A position in the input with its time, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// Stream id.
    pub stream: u32,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte offset of the line in the decoded stream.
    pub offset: u64,
    /// Time of the record.
    pub time: Option<Time>,
}

/// Name and value of a field. Names are those of a format, or what a digest tells.
pub type Field = (Cow<'static, str>, String);

/// A record kept as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Where it stands.
    pub at: Mark,
    /// Its text, wrappers included; at most [`MAX_TEXT`] bytes, invalid UTF-8 replaced. Control bytes are kept.
    pub text: String,
    /// Fields of the event.
    pub fields: Vec<Field>,
    /// Thread id of the header, 0 if none.
    pub tid: u32,
    /// Level of the header.
    pub level: Option<SampleLevel>,
    /// Source file of a WARN, empty if none.
    pub file: String,
    /// `N` of `[repeated Nx across cluster]`.
    pub repeated: u32,
}

/// Level of a sample, as far as rules need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleLevel {
    /// INFO, TRACE, CALL, VERSION and others.
    Info,
    /// WARN
    Warn,
    /// RCCL's FATAL ERROR
    Error,
}

impl From<Level> for SampleLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
            _ => Self::Info,
        }
    }
}

impl Sample {
    /// A field's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A field's value as a number.
    pub fn num(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }
}

/// A variable with a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingKey {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Printed by the library as in force (not only exported by a script).
    pub in_force: bool,
}

/// What one process of one stream did.
///
/// A process is told apart by (stream, label, host, pid). Lines without an NCCL header belong to a process without
/// host, whose pid and label are what their wrappers said; `job` decides who is the same.
#[derive(Debug, Clone)]
pub struct Process {
    /// Stream id.
    pub stream: u32,
    /// Source label of the wrappers (pod, service, actor); empty if none was needed.
    pub label: String,
    /// Host of the header; empty for lines without one.
    pub host: String,
    /// Process id; 0 if unknown.
    pub pid: u32,
    /// Rank that wrappers named for lines without a header: (is global, rank).
    pub rank_hint: Option<(bool, u32)>,
    /// Hosts and addresses that wrappers named.
    pub wrap_hosts: BTreeSet<String>,
    /// Ranks that wrappers named beside NCCL's own lines: (is global, rank).
    pub wrap_ranks: BTreeSet<(bool, u32)>,
    /// The header showed RCCL.
    pub rccl: bool,
    /// Library and version as printed.
    pub versions: BTreeSet<(Library, String)>,
    /// Records of this process.
    pub records: u64,
    /// First record.
    pub first: Arc<Sample>,
    /// Last record.
    pub last: Arc<Sample>,
    /// CUDA devices seen in headers.
    pub devices: BTreeSet<u16>,
    /// Settings with their first record.
    pub settings: BTreeMap<SettingKey, Arc<Sample>>,
    /// All notes.
    pub ledger: Ledger,
    /// Communicators in order of appearance.
    pub comms: Vec<CommLog>,
    /// Facts that were dropped because a bound was reached.
    pub dropped: u64,
}
