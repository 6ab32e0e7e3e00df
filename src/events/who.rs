//! Which rank speaks, as far as the stream has told up to now.

use super::json::source;
use crate::digest::Parsed;
use crate::event::Init;
use crate::job::rank_of_name;
use crate::line::{RankHint, Wrap};
use ahash::AHashMap;

/// Most threads of one stream that are told apart.
const MAX_KNOWN: usize = 65_536;

/// A device of a process.
type Device = (Vec<u8>, u32, Option<u16>);

/// What is known of the ranks.
pub struct Who {
    /// Device of a process → (size of the communicator, rank in it); the largest counts.
    ranks: AHashMap<Device, (u32, u32)>,
    /// Rank of the file's name; holds where nothing better is known.
    of_name: Option<u32>,
    /// Members for each source of the block; empty if they are to be made anew.
    members: Vec<Vec<u8>>,
    foreign: Vec<u8>,
}

impl Who {
    /// Nothing is known but the stream's name.
    pub fn new(name: &str) -> Self {
        Self { ranks: AHashMap::new(), of_name: rank_of_name(name), members: Vec::new(), foreign: Vec::new() }
    }

    /// A block begins.
    pub fn begin(&mut self, parsed: &Parsed<'_>) {
        self.members.clear();
        self.members.resize(parsed.sources.len(), Vec::new());
    }

    /// A rank names itself.
    pub fn learn(&mut self, parsed: &Parsed<'_>, of: Option<u32>, init: &Init<'_>) {
        let (Some(rank), Some(nranks), Some(seen)) = (init.rank, init.nranks, of.and_then(|s| parsed.sources.get(s as usize))) else { return };
        if self.ranks.len() >= MAX_KNOWN {
            return;
        }
        let known = self.ranks.entry((seen.host.to_vec(), seen.pid, seen.dev)).or_insert((nranks, rank));
        if nranks >= known.0 {
            *known = (nranks, rank);
        }
        self.members.iter_mut().for_each(Vec::clear);
    }

    /// The members of a record without header.
    pub fn foreign(&mut self, wrap: &Wrap<'_>) {
        let rank = hint(wrap).or(self.of_name);
        source(rank, wrap.host, wrap.pid.unwrap_or(0), 0, None, &mut self.foreign);
    }

    /// The members of a source of the block.
    pub fn of(&mut self, parsed: &Parsed<'_>, of: Option<u32>) -> &[u8] {
        let Some((seen, members)) = of.and_then(|s| Some((parsed.sources.get(s as usize)?, self.members.get_mut(s as usize)?))) else { return &self.foreign };
        if members.is_empty() {
            let known = self.ranks.get(&(seen.host.to_vec(), seen.pid, seen.dev)).map(|(_, rank)| *rank);
            source(known.or_else(|| hint(&seen.wrap)).or(self.of_name), seen.host, seen.pid, seen.tid, seen.dev, members);
        }
        members
    }
}

fn hint(wrap: &Wrap<'_>) -> Option<u32> {
    match wrap.rank {
        Some(RankHint::Global(rank)) => Some(rank),
        _ => None,
    }
}
