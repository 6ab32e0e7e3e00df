//! Facts of hosts: what the output of read-only commands says, pasted beside a log or collected into a file.
//!
//! Lines are picked by [`gate`], which looks at one line alone, so that blocks can be cut anywhere; the [`Reader`] is
//! fed by the fold in order and knows in which command's output a line stands. A table may be torn or have lost its
//! spaces: what is sure is read, the rest is skipped.
//!
//! Files that `ncclog collect` writes are made of the same outputs between three kinds of lines:
//!
//! ```text
//! ### ncclog-collect 1 host=NAME time=RFC3339
//! ### $ COMMAND
//! …its output, standard error included…
//! ### exit N
//! ```

mod bandwidth;
mod gate;
mod host;
mod ip;
mod kernel;
mod limits;
mod model;
mod nvidia;
mod pci;
mod prefix;
mod reader;
mod rocm;
mod runner;
mod source;
mod sysfs;
#[cfg(test)]
mod tests;
mod verbs;

pub use gate::gate;
pub use model::*;
pub use pci::bus_of;
pub use reader::{RawLine, Reader};

use reader::Scene;

/// A command family: what its output tells, and the parser that reads it.
pub struct Family {
    /// Commands whose output it reads, the usual way to call them.
    pub commands: &'static [&'static str],
    /// What is read, for people.
    pub reads: &'static str,
    /// First words of the lines that it wants to see.
    starts: &'static [&'static str],
    /// Reads a line; false if it is none of its own.
    read: fn(&mut Scene<'_>) -> bool,
}

/// All families. A line goes to the first that takes it.
pub static FAMILIES: &[&Family] = &[
    &sysfs::SYSFS,
    &nvidia::NVIDIA_SMI,
    &nvidia::TOPO,
    &verbs::IBV_DEVINFO,
    &verbs::LINKS,
    &ip::ADDRESSES,
    &ip::ETHTOOL,
    &kernel::CMDLINE,
    &pci::LSPCI,
    &limits::LIMITS,
    &limits::SHM,
    &rocm::ROCM_SMI,
    &rocm::ROCMINFO,
    &rocm::VULKAN,
    &bandwidth::PERFTEST,
];

/// The family that would read a line, given the context that it needs: for explanations.
pub fn family_of(line: &str) -> Option<&'static Family> {
    let text = line.trim();
    if text.len() > gate::MAX_FACT_LINE || !gate(text.as_bytes()) {
        return None;
    }
    let at = Line::default();
    FAMILIES.iter().copied().find(|family| {
        let mut host = HostFacts::default();
        let mut memo = reader::Memo { hca: "hca".to_owned(), port: 1, interface: "if".to_owned(), ..reader::Memo::default() };
        let mut scene = Scene { text, words: text.split_whitespace().take(64).collect(), at: &at, memo: &mut memo, host: &mut host };
        (family.read)(&mut scene)
    })
}
