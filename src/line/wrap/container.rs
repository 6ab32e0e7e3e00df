//! Containers and their log tools: kubectl and stern, CRI files, docker compose, CloudWatch.

use super::{Chunk, Peel, Wrap, logger};
use crate::line::scan::{split_at_mark, trim, trim_start};

/// `[pod/NAME/CONTAINER] ` of `kubectl logs --prefix`.
pub fn pod<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(b"[pod/")?;
    let (label, rest) = split_at_mark(rest, b"] ", 400)?;
    let slash = memchr::memchr(b'/', label)?;
    wrap.host = &label[..slash];
    wrap.label = label;
    Some(rest)
}

/// `stdout F ` behind a time (CRI). Tags may follow the first letter (`P:x`).
pub fn cri(text: &[u8]) -> Option<(Chunk, &[u8])> {
    let (err, rest) = match text {
        [b's', b't', b'd', b'o', b'u', b't', b' ', rest @ ..] => (false, rest),
        [b's', b't', b'd', b'e', b'r', b'r', b' ', rest @ ..] => (true, rest),
        _ => return None,
    };
    let (partial, rest) = match rest {
        [b'F', rest @ ..] => (false, rest),
        [b'P', rest @ ..] => (true, rest),
        _ => return None,
    };
    let rest = match rest {
        [] => rest,
        [b' ', rest @ ..] => rest,
        [b':', tags @ ..] => split_at_mark(tags, b" ", 64)?.1,
        _ => return None,
    };
    Some((Chunk { err, partial }, rest))
}

/// The stream's name that `aws logs tail` puts behind the time: `worker-2/pytorch/98 `.
pub fn stream<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (name, rest) = split_at_mark(text, b" ", 200)?;
    let plain = name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'));
    if !plain || name.starts_with(b"/") || memchr::memchr_iter(b'/', name).count() < 2 {
        return None;
    }
    wrap.label = name;
    wrap.host = &name[..memchr::memchr(b'/', name)?];
    Some(rest)
}

/// A row of a table whose first column is a time: `| ISO | text |`.
pub fn table<'a>(text: &'a [u8], peel: &mut Peel<'a>) -> Option<&'a [u8]> {
    let rest = trim_start(text.strip_prefix(b"|")?);
    let rest = logger::stamp(rest, peel)?;
    let rest = trim_start(rest);
    let rest = rest.strip_prefix(b"|").unwrap_or(rest);
    Some(rest.strip_suffix(b"|").map_or(rest, trim))
}

/// `worker-1  | ` of docker compose. The name must end in a number, else any sentence with a bar would do.
pub fn compose<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let len = text.iter().take(80).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')).count();
    let (name, rest) = text.split_at(len);
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || !matches!(name.get(..name.len() - digits), Some([.., b'-' | b'_'])) || !rest.starts_with(b" ") {
        return None;
    }
    let rest = trim_start(rest).strip_prefix(b"|")?;
    wrap.label = name;
    matches!(rest.first(), None | Some(b' ')).then_some(rest)
}
