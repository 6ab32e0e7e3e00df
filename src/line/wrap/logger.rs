//! Loggers and journals: times in front, journald, loguru, glog, the line format of vLLM.

use super::{Peel, Wrap, container};
use crate::line::scan::{blanks, decimal, number, split_at_mark, trim_start, word};
use crate::line::time::{Clock, Time, boot, bracketed, glog, time};

/// A time in front, with what its kind of log puts behind it.
pub fn stamp<'a>(text: &'a [u8], peel: &mut Peel<'a>) -> Option<&'a [u8]> {
    if text.starts_with(b"[") {
        let (rest, at) = bracketed(text).or_else(|_| boot(text)).ok()?;
        peel.wrap.time = Some(at);
        return free(rest).then(|| separator(rest));
    }
    if let Some(rest) = bare_glog(text, &mut peel.wrap) {
        return Some(rest);
    }
    let (rest, at) = time(text).ok()?;
    if !free(rest) {
        return None;
    }
    peel.wrap.time = Some(at);
    let blank = trim_start(rest);
    if let Some(rest) = journal(blank, at, &mut peel.wrap) {
        return Some(rest);
    }
    if let Some((chunk, rest)) = container::cri(blank) {
        peel.chunk = Some(chunk);
        return Some(rest);
    }
    let zone = text.len() - rest.len() >= 6 && text[..text.len() - rest.len()].ends_with(b"+00:00");
    if zone && let Some(rest) = container::stream(blank, &mut peel.wrap) {
        return Some(rest);
    }
    Some(loguru(blank).unwrap_or_else(|| separator(rest)))
}

/// Nothing that would make the time a part of a longer word.
fn free(rest: &[u8]) -> bool {
    matches!(rest.first(), None | Some(b' ' | b'\t' | b':' | b'[' | b'(' | b'|' | b','))
}

/// One mark between time and text: `: `, ` - `, ` | `.
fn separator(rest: &[u8]) -> &[u8] {
    let rest = trim_start(rest);
    match rest {
        [b':' | b'-' | b'|' | b',', b' ', tail @ ..] | [b':', tail @ ..] => tail,
        _ => rest,
    }
}

/// `host unit[pid]: ` behind journald's time, `host kernel: `.
fn journal<'a>(text: &'a [u8], at: Time, wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (rest, host) = word(b":[]()|,")(text).ok()?;
    let (rest, unit) = word(b":[]|")(rest.strip_prefix(b" ")?).ok()?;
    let (rest, pid) = match rest.strip_prefix(b"[") {
        Some(rest) => {
            let (rest, pid) = number(rest).ok()?;
            (rest.strip_prefix(b"]")?, Some(pid))
        }
        None => (rest, None),
    };
    let rest = rest.strip_prefix(b":")?;
    let known = pid.is_some() || unit == b"kernel" || at.clock == Clock::YearDay;
    if !known || !matches!(rest.first(), None | Some(b' ')) {
        return None;
    }
    wrap.host = host;
    wrap.label = unit;
    if pid.is_some() {
        wrap.pid = pid;
    }
    Some(rest)
}

/// `| INFO     | mod:fn:12 - ` behind loguru's time.
fn loguru(text: &[u8]) -> Option<&[u8]> {
    let rest = trim_start(text.strip_prefix(b"|")?);
    let len = rest.iter().take_while(|b| b.is_ascii_uppercase()).count();
    if !(4..=8).contains(&len) {
        return None;
    }
    let rest = trim_start(&rest[len..]).strip_prefix(b"|")?;
    Some(split_at_mark(rest, b" - ", 200)?.1)
}

/// glog without brackets: `E1130 12:00:00.123456 4711 torch/elastic/api.py:833] `.
fn bare_glog<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let (rest, at) = glog(text).ok()?;
    let (head, rest) = split_at_mark(rest.strip_prefix(b" ")?, b"] ", 200)?;
    if head.contains(&b'[') {
        return None;
    }
    wrap.time = Some(at);
    Some(rest)
}

/// `INFO 11-30 12:00:00 [pynccl.py:69] ` of vLLM; without the opening bracket up to 0.7.
pub fn level_first<'a>(text: &'a [u8], wrap: &mut Wrap<'a>) -> Option<&'a [u8]> {
    let len = text.iter().take(9).take_while(|b| b.is_ascii_uppercase()).count();
    if !matches!(&text[..len], b"INFO" | b"WARNING" | b"ERROR" | b"DEBUG" | b"CRITICAL") {
        return None;
    }
    let (rest, _) = blanks(&text[len..]).ok()?;
    let (rest, at) = time(rest).ok()?;
    let rest = rest.strip_prefix(b" ")?;
    let (place, rest) = split_at_mark(rest.strip_prefix(b"[").unwrap_or(rest), b"] ", 120)?;
    let colon = memchr::memrchr(b':', place)?;
    decimal(&place[colon + 1..])?;
    if place.contains(&b' ') {
        return None;
    }
    wrap.time = Some(at);
    Some(rest)
}
