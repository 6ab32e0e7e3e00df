//! Input: paths to blocks of whole lines. Knows nothing of NCCL.
//!
//! Plain files are read by the workers themselves with positioned reads (no mmap: logs are truncated and rotated
//! under us). Streams (standard input, pipes, compressed and UTF-16 files) have one sequential
//! reader each, on threads of their own, so that decoding and parsing overlap.

mod archive;
mod decode;
mod file;
mod pump;
mod resolve;
mod stream;

pub use archive::{HEAD, is_tar};
pub use decode::{Encoding, decoder, read_up_to, sniff};
pub use file::{Block, FileBlocks, read_block};
pub use pump::{Pumped, Pumps, WHOLE};
pub use resolve::{MAX_DEPTH, Resolved, Source, closed_folder, is_program, may_be_log, natural_key, resolve};
pub use stream::StreamBlocks;

use crate::line::MAX_LINE;

/// Default size of a block in bytes.
pub const BLOCK_SIZE: usize = 1 << 20;

/// How much of a line that crosses a block's end is read behind it.
pub const OVERHANG: usize = MAX_LINE;

/// Place of a block's own text in its stream.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the text.
    pub bytes: u64,
    /// The text does not end with a line end.
    pub open_end: bool,
    /// A line end of an earlier block's over-long line stands before the text.
    pub closes_open_line: bool,
}

/// An input that could not be used, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path as the user gave it; of a member, with its archive.
    pub path: String,
    /// What happened and what to do, one plain line without the path.
    pub text: String,
}
