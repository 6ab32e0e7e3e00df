//! JSON around a line: docker json-file, journald, Loki, CloudWatch, TGI, structlog, loguru; also one line of a
//! pretty-printed document.

use super::{Chunk, RankHint, Wrap};
use crate::line::scan::decimal;
use crate::line::time::{Time, time};
use bumpalo::Bump;
use serde_json::{Map, Value};

/// Keys that hold the text, best first.
const TEXT: [&str; 9] = ["log", "MESSAGE", "message", "msg", "line", "Line", "event", "text", "textPayload"];
/// Keys that hold the time.
const TIME: [&str; 8] = ["time", "timestamp", "ts", "tsNs", "@timestamp", "__REALTIME_TIMESTAMP", "Timestamp", "asctime"];
/// Keys that hold the host.
const HOST: [&str; 5] = ["_HOSTNAME", "host", "hostname", "pod", "pod_name"];
/// Keys that hold the source's name.
const LABEL: [&str; 5] = ["SYSLOG_IDENTIFIER", "pod", "pod_name", "container", "container_name"];
/// Objects that hold some of these keys in place of the root.
const NESTED: [&str; 5] = ["labels", "kubernetes", "fields", "record", "stream"];
/// Docker cuts lines into pieces of this size.
const DOCKER: usize = 16 * 1024;

/// What an object held.
pub struct Unfolded<'a> {
    /// Its text; may hold line ends.
    pub text: &'a [u8],
    /// Set if Docker cut the line here.
    pub chunk: Option<Chunk>,
    /// The object lacked its end.
    pub torn: bool,
}

/// Reads a whole object. Fields of `wrap` that it names are overwritten.
pub fn object<'a>(text: &[u8], arena: &'a Bump, wrap: &mut Wrap<'a>) -> Option<Unfolded<'a>> {
    let inner = text.strip_prefix(b"{")?.trim_ascii_start();
    if !inner.starts_with(b"\"") {
        return None;
    }
    let whole = text.trim_ascii_end();
    let whole = whole.strip_suffix(b",").unwrap_or(whole);
    let parsed = match serde_json::from_slice(whole) {
        Ok(map) => Some(map),
        Err(_) if whole.ends_with(b"}") => serde_json::from_str(&String::from_utf8_lossy(whole)).ok(),
        Err(_) => None,
    };
    let Some(map): Option<Map<String, Value>> = parsed else {
        return cut(whole, arena).map(|text| Unfolded { text, chunk: None, torn: true });
    };
    let message = text_of(&map)?;
    let text = match message {
        Message::Text(s) => arena.alloc_slice_copy(s.as_bytes()),
        Message::Bytes(b) => arena.alloc_slice_copy(&b),
    };
    hints(&map, arena, wrap);
    let err = map.get("stream").and_then(Value::as_str) == Some("stderr");
    let docker = map.contains_key("log") && map.contains_key("stream");
    let chunk = docker.then(|| Chunk { err, partial: text.len() >= DOCKER && !text.ends_with(b"\n") });
    Some(Unfolded { text, chunk, torn: false })
}

enum Message<'v> {
    Text(&'v str),
    Bytes(Vec<u8>),
}

fn text_of(map: &Map<String, Value>) -> Option<Message<'_>> {
    // `message` of the record is the plain text where loguru's `text` is a formatted line; TGI nests it in `fields`.
    for nested in ["record", "fields"] {
        if let Some(Value::Object(inner)) = map.get(nested)
            && let Some(Value::String(s)) = inner.get("message")
        {
            return Some(Message::Text(s));
        }
    }
    TEXT.iter().find_map(|key| match map.get(*key)? {
        Value::String(s) => Some(Message::Text(s)),
        // journald writes bytes that are no UTF-8 as numbers.
        Value::Array(bytes) => bytes.iter().map(|b| b.as_u64().and_then(|b| u8::try_from(b).ok())).collect::<Option<Vec<u8>>>().map(Message::Bytes),
        _ => None,
    })
}

fn hints<'a>(map: &Map<String, Value>, arena: &'a Bump, wrap: &mut Wrap<'a>) {
    let find = |keys: &[&str]| {
        let nested = NESTED.iter().filter_map(|n| map.get(*n)?.as_object());
        std::iter::once(map).chain(nested).find_map(|m| keys.iter().find_map(|k| m.get(*k).filter(|v| v.is_string() || v.is_number() || *k == "time")))
    };
    if let Some(at) = find(&TIME).and_then(time_of) {
        wrap.time = Some(at);
    }
    if let Some(host) = find(&HOST).and_then(Value::as_str) {
        wrap.host = arena.alloc_slice_copy(host.as_bytes());
    }
    if let Some(label) = find(&LABEL).and_then(Value::as_str) {
        wrap.label = arena.alloc_slice_copy(label.as_bytes());
    }
    if let Some(pid) = find(&["_PID", "pid"]).and_then(number) {
        wrap.pid = Some(pid);
    }
    let span = map.get("span").and_then(Value::as_object).and_then(|s| s.get("rank"));
    if let Some(rank) = span.or_else(|| map.get("rank")).and_then(number) {
        wrap.rank = Some(RankHint::Global(rank));
    }
}

fn number(value: &Value) -> Option<u32> {
    let n = value.as_u64().or_else(|| decimal(value.as_str()?.as_bytes()))?;
    u32::try_from(n).ok()
}

fn time_of(value: &Value) -> Option<Time> {
    match value {
        Value::Number(n) => n.as_u64().or_else(|| n.as_f64().map(|f| (f * 1e6) as u64)).and_then(Time::from_epoch),
        Value::String(s) => decimal(s.as_bytes()).and_then(Time::from_epoch).or_else(|| time(s.as_bytes()).ok().map(|(_, t)| t)),
        // loguru: {"repr": …, "timestamp": seconds}
        Value::Object(inner) => inner.get("timestamp").and_then(time_of),
        _ => None,
    }
}

/// The text of an object that lacks its end.
fn cut<'a>(text: &[u8], arena: &'a Bump) -> Option<&'a [u8]> {
    let keys = [&b"\"log\":"[..], b"\"MESSAGE\":", b"\"message\":", b"\"line\":", b"\"msg\":"];
    let (at, key) = keys.iter().filter_map(|k| memchr::memmem::find(text, k).map(|p| (p, k.len()))).min()?;
    let value = text[at + key..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = closing_quote(value).unwrap_or(value.len());
    string(&value[..end], arena)
}

/// Position of the quote that ends a JSON string.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|b| {
        let end = *b == b'"' && !escaped;
        escaped = *b == b'\\' && !escaped;
        end
    })
}

/// The inside of a JSON string, unescaped; an escape that is cut at the end is dropped.
fn string<'a>(inside: &[u8], arena: &'a Bump) -> Option<&'a [u8]> {
    let lossy = String::from_utf8_lossy(inside);
    (0..=6).find_map(|drop| {
        let part = lossy.get(..lossy.len().checked_sub(drop)?)?;
        let text: String = serde_json::from_str(&format!("\"{part}\"")).ok()?;
        Some(&*arena.alloc_slice_copy(text.as_bytes()))
    })
}

/// The document of `ncclras` on one line (`jq -c`), with each member on a line of its own.
pub fn report<'a>(text: &[u8], arena: &'a Bump) -> Option<&'a [u8]> {
    const HEAD: usize = 512;
    memchr::memmem::find(&text[..text.len().min(HEAD)], b"\"communicators_count\"")?;
    let mut out = bumpalo::collections::Vec::with_capacity_in(text.len() + text.len() / 4, arena);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.iter().copied() {
        match byte {
            b'"' if !escaped => quoted = !quoted,
            b' ' | b'\t' if !quoted => continue,
            _ => {}
        }
        escaped = quoted && byte == b'\\' && !escaped;
        match byte {
            b'}' | b']' if !quoted => out.extend_from_slice(&[b'\n', byte]),
            b'{' | b'[' | b',' if !quoted => out.extend_from_slice(&[byte, b'\n']),
            b':' if !quoted => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    Some(out.into_bump_slice())
}

/// One member of a pretty-printed document on a line of its own.
pub enum Fragment<'a> {
    /// The text of an event.
    Text(&'a [u8]),
    /// Its time.
    Time(Time),
}

/// Reads `"message": "…",` or `"timestamp": 1784876198520,`.
pub fn fragment<'a>(text: &[u8], arena: &'a Bump) -> Option<Fragment<'a>> {
    let inner = text.strip_prefix(b"\"")?;
    let quote = memchr::memchr(b'"', inner.get(..40).unwrap_or(inner))?;
    let key = std::str::from_utf8(&inner[..quote]).ok()?;
    let value = inner[quote + 1..].trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    let value = value.strip_suffix(b",").unwrap_or(value);
    if TIME.contains(&key) {
        let value: Value = serde_json::from_slice(value).ok()?;
        return time_of(&value).map(Fragment::Time);
    }
    if !TEXT.contains(&key) {
        return None;
    }
    let inside = value.strip_prefix(b"\"")?;
    let end = closing_quote(inside).unwrap_or(inside.len());
    string(&inside[..end], arena).map(Fragment::Text)
}
