//! Names in parentheses: Ray (`(RayWorkerWrapper pid=2981, ip=10.0.0.2) `), vLLM (`(Worker_TP0 pid=7) `,
//! `(VllmWorker rank=0 pid=7) `), SkyPilot (`(worker1, rank=1, pid=9, ip=10.0.0.3) `), and Ray's suffix.

use super::{RankHint, Wrap};
use crate::line::scan::{number, split_at_mark, trim_start};
use memchr::memmem;

/// Longest text in the parentheses.
const WINDOW: usize = 200;

/// Takes `(name … pid=N…)` off.
pub fn peel<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let inner = text.strip_prefix(b"(")?;
    if !inner.first()?.is_ascii_alphabetic() {
        return None;
    }
    let Some((name, rest)) = split_at_mark(inner, b"pid=", WINDOW) else { return nameless(inner, wrap) };
    let (rest, pid) = number(rest).ok()?;
    let name = name.strip_suffix(b" ")?;
    let close = memchr::memchr(b')', rest.get(..WINDOW).unwrap_or(rest))?;
    let (tail, rest) = (&rest[..close], &rest[close + 1..]);
    if !(tail.is_empty() || tail.starts_with(b",")) {
        return None;
    }
    wrap.pid = Some(pid);
    if let Some((_, ip)) = split_at_mark(tail, b"ip=", WINDOW) {
        wrap.host = ip;
    }
    // Behind a comma stands SkyPilot's number of the node, which is no rank.
    let (name, on_node) = match memchr::memchr(b',', name) {
        Some(comma) => (&name[..comma], true),
        None => (name, false),
    };
    if on_node {
        if wrap.host.is_empty() {
            wrap.host = name;
        }
        wrap.label = name;
        return Some(trim_start(rest));
    }
    let (label, rank) = split_at_mark(name, b" rank=", WINDOW).map_or((name, None), |(label, rank)| (label, number(rank).ok()));
    wrap.label = label;
    if let Some(rank) = rank.map(|r| r.1).or_else(|| tensor_rank(label)) {
        wrap.rank = Some(RankHint::Local(rank));
    }
    Some(trim_start(rest))
}

/// Ray's own processes carry no pid: `(raylet) `, `(raylet, ip=10.0.0.2) `, `(autoscaler +5s) `.
fn nameless<'a>(inner: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (name, rest) = split_at_mark(inner, b") ", 64)?;
    let known = [&b"raylet"[..], b"autoscaler", b"gcs_server", b"bundle_reservation_check_func"];
    let label = *known.iter().find(|k| name.strip_prefix(**k).is_some_and(|t| matches!(t.first(), None | Some(b',' | b' '))))?;
    wrap.label = &name[..label.len()];
    if let Some((_, ip)) = split_at_mark(name, b"ip=", WINDOW) {
        wrap.host = ip;
    }
    Some(rest)
}

/// `TP3` in `Worker_TP3`, `VllmWorker TP3`, `Worker_PP0_TP3`.
fn tensor_rank(label: &[u8]) -> Option<u32> {
    let at = memmem::find(label, b"TP")?;
    let free = at.checked_sub(1).is_none_or(|p| matches!(label[p], b'_' | b' '));
    number(&label[at + 2..]).ok().filter(|_| free).map(|r| r.1)
}

/// Takes ` [repeated 5x across cluster]` off the end, with the hint that Ray puts behind it once.
pub fn suffix<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> &'a [u8] {
    let Some(at) = memmem::rfind(text, b" [repeated ") else { return text };
    let Ok((rest, n)) = number(&text[at + 11..]) else { return text };
    if !rest.starts_with(b"x across ") {
        return text;
    }
    wrap.repeated = n;
    &text[..at]
}
