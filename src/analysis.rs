//! Wires input, line, event and digest over many files in parallel, then asks job and rules. There is one way to
//! compute a finding; `analyze`, and later `follow` and digests, all come through here.

use crate::rules::Analysis;

/// What to analyse and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Files, directories, glob patterns or `-` for standard input.
    pub inputs: Vec<String>,
    /// Worker threads; 0 chooses the number of cores.
    pub threads: usize,
    /// Bytes of a block; 0 chooses the default. Does not change the result.
    pub block_size: usize,
}

/// An input that could not be used, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path as the user gave it.
    pub path: String,
    /// What happened and what to do, one plain line without the path.
    pub text: String,
}

/// The analysis and what went wrong on the way.
#[derive(Debug)]
pub struct Outcome {
    /// What was found in the inputs that could be read.
    pub analysis: Analysis,
    /// Inputs that could not be read; exit code 2 if there is one.
    pub problems: Vec<Problem>,
}

/// Receives progress while the inputs are read.
pub trait Progress: Sync {
    /// Total bytes, where known beforehand.
    fn total(&self, bytes: u64);
    /// Bytes read since the last call.
    fn advance(&self, bytes: u64);
}

/// No progress wanted.
pub struct Silent;

impl Progress for Silent {
    fn total(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}
