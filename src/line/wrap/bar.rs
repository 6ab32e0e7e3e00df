//! Progress bars (tqdm) that other text is glued behind: `Epoch 3:   1%|█  | 40/4000 [00:01<01:12, 38.21it/s]NCCL …`.

use crate::line::scan::split_at_mark;

/// Takes a bar off if text follows it; a bare bar is a record like any other.
pub fn peel(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_at_mark(text, b"%|", 200)?;
    let (_, rest) = split_at_mark(rest, b"| ", 400)?;
    let (count, rest) = split_at_mark(rest, b" [", 64)?;
    if !count.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'?' | b' ')) {
        return None;
    }
    let (inner, rest) = split_at_mark(rest, b"]", 300)?;
    (inner.contains(&b':') && !rest.is_empty()).then_some(rest)
}
