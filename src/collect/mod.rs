//! Host facts: runs the read-only commands that decide what logs cannot, and writes one text that `analyze` reads.
//!
//! One table feeds the binary and the shell script for hosts without it, so that both write the same sections:
//! `### ncclog-collect 1 host=… time=… root=…` at the top, then for each command `### $ COMMAND`, its output, and
//! `### exit N`, `### missing`, `### timed out after N s`, `### cut after N bytes` or `### interrupted`.

mod child;
mod run;
mod script;
mod table;

pub use run::{End, Section, Step, chains, collect, header, shown};
pub use script::script;
pub use table::{Call, PROBES, Probe};

/// First word of the first line. Another number would mean another shape.
pub const MAGIC: &str = "### ncclog-collect 1";

/// Where administrators' commands lie that a user's search path often lacks.
pub const MORE_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin";

/// Most bytes of one command's output. The kernel's own buffer of messages is smaller.
pub const MOST_BYTES: usize = 4 << 20;

/// Most interfaces that a command is run for.
pub const MOST_INTERFACES: usize = 64;
