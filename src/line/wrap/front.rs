//! Wrappers so plain that they are believed only if an NCCL header or another rank's mark comes behind them.

use super::{RankHint, Wrap};
use crate::line::scan::{decimal, number, split_at_mark, trim_start};

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take(255).take_while(|b| is_name(**b)).count();
    (len > 0).then(|| text.split_at(len))
}

/// Takes one of them off that [`crate::line`] does not take off by itself.
pub fn front<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    match *text.first()? {
        b'+' | b'-' => text[1..].strip_prefix(b" ").map(trim_start),
        b'[' => rank_or_mark(text, wrap),
        b'0'..=b'9' => numbering(text).or_else(|| named(text, wrap)).map(trim_start),
        _ => named(text, wrap).map(trim_start),
    }
}

/// `[12] ` of Intel MPI and MPICH is the rank; other brackets (`[0604/1024] `, `[worker] `) say nothing.
fn rank_or_mark<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (inner, rest) = split_at_mark(&text[1..], b"] ", 80)?;
    // A bracket in the bracket: the end of one record and the device of the next.
    if inner.contains(&b'[') {
        return None;
    }
    if let Some(n) = decimal(inner).and_then(|n| u32::try_from(n).ok()) {
        wrap.rank = Some(RankHint::Global(n));
    }
    Some(trim_start(rest))
}

/// `12:`, `12-` (grep -n), `12  ` (nl, cat -n).
fn numbering(text: &[u8]) -> Option<&[u8]> {
    let (rest, _) = number(text).ok()?;
    match rest {
        [b':' | b'-', first, ..] if !first.is_ascii_digit() => Some(&rest[1..]),
        [b' ' | b'.' | b'|' | b')', b' ', rest @ ..] | [b'\t', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// `host: ` (pdsh), `file.log:12:` (grep -H), `NAME | ` (compose), `NAME CONTAINER ` (stern), `INFO ` of a logger.
fn named<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (first, rest) = name(text)?;
    let shouted = first.iter().all(u8::is_ascii_uppercase);
    match rest {
        [b':', rest @ ..] => {
            let behind = number(rest).ok().and_then(|(rest, _)| rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"-")));
            if let Some(rest) = behind {
                return Some(rest);
            }
            // A number behind the colon is a port or a process, and the whole is something else.
            if rest.first().is_some_and(u8::is_ascii_digit) {
                return None;
            }
            if !shouted {
                wrap.host = first;
            }
            Some(rest)
        }
        [b' ', rest @ ..] => {
            let rest = trim_start(rest);
            if let Some(rest) = rest.strip_prefix(b"|") {
                wrap.label = first;
                return Some(rest);
            }
            if shouted {
                return Some(rest);
            }
            let (second, rest) = name(rest)?;
            let rest = rest.strip_prefix(b" ").filter(|_| first.contains(&b'-'))?;
            wrap.host = first;
            wrap.label = &text[..first.len() + 1 + second.len()];
            Some(rest)
        }
        _ => None,
    }
}
