//! Whose line it is, by what launchers and log tools put in front of it.

use super::gate::is_command;
use super::model::{HostFacts, Line};
use super::reader::{Memo, Scene, Source};
use super::{FAMILIES, source};
use crate::line::{RankHint, Wrap, front as peel};

/// The source that the wrappers name. `msg` is the line without them.
pub fn source(wrap: &Wrap<'_>, msg: &[u8]) -> Source {
    let task = match wrap.rank {
        Some(RankHint::Global(rank)) if !is_numbered(msg) => Some(rank),
        // A number within a node tells no host.
        _ => None,
    };
    Source { label: wrap.label.to_vec(), host: wrap.host.to_vec(), pid: wrap.pid, task }
}

/// What the output of commands itself puts behind a number and a colon: `2: eth0: <UP>`, `2: eth0 inet …`, `4: ACTIVE`.
fn is_numbered(msg: &[u8]) -> bool {
    const STATES: [&[u8]; 11] =
        [b"ACTIVE", b"DOWN", b"INIT", b"ARMED", b"ACTIVE_DEFER", b"LinkUp", b"Disabled", b"Polling", b"Sleep", b"LinkErrorRecovery", b"PortConfigurationTraining"];
    let mut words = msg.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    second.map_or_else(|| STATES.contains(&first), |second| second.first() == Some(&b'<') || [&b"inet"[..], b"inet6", b"node_type"].contains(&second))
}

/// Takes a prefix off that is not believed by itself: `node1: `, `POD CONTAINER `, `SERVICE | `, `[3] `.
pub fn front<'a>(outer: &Source, msg: &'a [u8]) -> Option<(Source, &'a [u8])> {
    let mut wrap = Wrap::default();
    let text = peel(msg, &mut wrap)?;
    let mut found = outer.clone();
    match wrap.rank {
        Some(RankHint::Global(rank)) => found.task = Some(rank),
        _ if wrap.host.is_empty() && wrap.label.is_empty() => return None,
        _ => {}
    }
    if is_command(wrap.host) || is_command(wrap.label) {
        return None;
    }
    if !wrap.host.is_empty() {
        found.host = wrap.host.to_vec();
    }
    if !wrap.label.is_empty() {
        found.label = wrap.label.to_vec();
    }
    Some((found, text))
}

/// The prefix looks like the name of a machine, and like no word.
pub fn is_host(source: &Source) -> bool {
    source.task.is_some() || [&source.host, &source.label].iter().any(|name| name.iter().any(|b| b.is_ascii_digit() || *b == b'-'))
}

/// A line that is a fact, or the beginning of some, whatever stands before it.
pub fn tells(text: &str) -> bool {
    let (mut memo, mut host) = (Memo::default(), HostFacts::default());
    if source::heading(text, &memo).is_some() {
        return true;
    }
    let at = Line::default();
    let mut scene = Scene { text, words: text.split_whitespace().take(64).collect(), at: &at, memo: &mut memo, host: &mut host };
    FAMILIES.iter().any(|f| (f.read)(&mut scene))
}
