//! The NCCL line header, nom grammar. Source: `src/debug.cc` of NCCL 2.2 … 2.32 and of RCCL.

use super::Time;

/// Level token of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `NCCL INFO`
    Info,
    /// `NCCL WARN`
    Warn,
    /// RCCL's `[FATAL ERROR]:`
    Error,
    /// `NCCL TRACE`
    Trace,
    /// `NCCL CALL`
    Call,
    /// A bare or logged version line.
    Version,
    /// Any other level name (`NOTICE`, `DIAG`).
    Other,
}

/// A parsed header. Empty or zero fields were not printed.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Host name up to its first dot; empty if the header had none.
    pub host: &'a [u8],
    /// Process id; 0 if the header had none.
    pub pid: u32,
    /// Kernel thread id; 0 if the header had none.
    pub tid: u32,
    /// CUDA device of the thread (no rank); `None` if absent or garbage (not in 0..1024).
    pub dev: Option<u16>,
    /// Level.
    pub level: Level,
    /// Source file of a WARN, build path removed; empty otherwise.
    pub file: &'a [u8],
    /// Source line of a WARN.
    pub file_line: u32,
    /// Function (2.30.7+); empty otherwise.
    pub func: &'a [u8],
    /// NCCL's own time stamp.
    pub time: Option<Time>,
    /// The header shows RCCL (`hipify/` path, `[FATAL ERROR]`).
    pub rccl: bool,
}

/// Reads a header at the start of `text`; returns it and the message behind it.
pub fn parse_header(text: &[u8]) -> Option<(Header<'_>, &[u8])> {
    // Interim reader of the plain shape; the line stage replaces it.
    let at = memchr::memmem::find(text, b" NCCL INFO ").map(|p| (p, Level::Info)).or_else(|| memchr::memmem::find(text, b" NCCL WARN ").map(|p| (p, Level::Warn)))?;
    let head = &text[..at.0];
    let first = head.split(|b| *b == b' ').next()?;
    let mut parts = first.split(|b| *b == b':');
    let num = |p: Option<&[u8]>| std::str::from_utf8(p?).ok()?.parse::<u32>().ok();
    let host = parts.next()?;
    let pid = num(parts.next())?;
    let tid = num(parts.next())?;
    Some((Header { host, pid, tid, dev: None, level: at.1, file: b"", file_line: 0, func: b"", time: None, rccl: false }, &text[at.0 + 11..]))
}
