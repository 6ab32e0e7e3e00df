//! Identities that show by their form: addresses, GUIDs, UUIDs, ids.

use super::address;
use super::scan::{Class, Line, Sink, is_word};
use std::net::{Ipv4Addr, Ipv6Addr};

impl<S: Sink> Line<'_, S> {
    /// Addresses, GUIDs, UUIDs and other identities that show by their form.
    pub fn address(&mut self, s: usize, e: usize) -> Option<usize> {
        let chunk = &self.b[s..e];
        let next = self.at(e);
        let hex = chunk.iter().take(17).all(u8::is_ascii_hexdigit);
        if next == b':'
            && chunk.len() <= 4
            && hex
            && let Some(end) = self.colon_run(s)
        {
            return Some(end);
        }
        if next == b'/' && self.before(s) == b'(' && hex && chunk.len() <= 16 {
            let end = self.chunk_end(e + 1);
            let halves = std::str::from_utf8(&self.b[s..end]).ok()?;
            if self.at(end) == b')' && end > e + 6 && address::decode_halves(halves).is_some() {
                self.take(s..end, Class::Halves);
                return Some(end);
            }
        }
        if chunk.len() == 17 && chunk.iter().enumerate().all(|(i, b)| if i % 3 == 2 { *b == b'-' } else { b.is_ascii_hexdigit() }) {
            self.take(s..e, Class::Mac);
            return Some(e);
        }
        if chunk.len() == 64 && chunk.iter().all(u8::is_ascii_hexdigit) && !self.previous().ends_with(b"sha256") {
            self.take(s..e, Class::Id);
            return Some(e);
        }
        if chunk.len() >= 36 && self.uuids(s, e) {
            return Some(e);
        }
        self.dotted(s, e)
    }

    /// UUIDs in a chunk (`GPU-5f2a…`); says whether there were any.
    fn uuids(&mut self, s: usize, e: usize) -> bool {
        let mut found = false;
        let mut at = s;
        while at + 36 <= e {
            let uuid = self.b[at..at + 36].iter().enumerate().all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() });
            if uuid && !self.before(at).is_ascii_alphanumeric() && !self.at(at + 36).is_ascii_alphanumeric() {
                self.take(at..at + 36, Class::Uuid);
                found = true;
                at += 36;
            } else {
                at += 1;
            }
        }
        found
    }

    /// IPv4 addresses in a chunk: alone, or a private one among other parts (`log_10.0.0.1.txt`).
    fn dotted(&mut self, s: usize, e: usize) -> Option<usize> {
        let chunk = &self.b[s..e];
        let dots = memchr::memchr_iter(b'.', chunk).take(3).count();
        if dots < 3 || chunk.len() < 7 {
            return None;
        }
        let parse = |t: &[u8]| std::str::from_utf8(t).ok().and_then(|t| t.parse::<Ipv4Addr>().ok());
        if let Some(ip) = parse(chunk) {
            if !address::plain_v4(ip) && !self.told_version() {
                self.take(s..e, Class::V4);
            }
            return Some(e);
        }
        let mut at = s;
        let mut found = false;
        while at < e {
            let len = self.b[at..e].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
            let mut end = at + len;
            while end > at && self.b[end - 1] == b'.' {
                end -= 1;
            }
            // `10.0.0.1.4711.log`: the address is the first four numbers.
            let four = self.b[at..end].iter().enumerate().filter(|(_, b)| **b == b'.').nth(3).map_or(end, |(n, _)| at + n);
            let private = |ip: &Ipv4Addr| ip.is_private() || matches!(ip.octets(), [100, 64..=127, ..] | [169, 254, ..]);
            if len >= 7 && !self.before(at).is_ascii_alphanumeric() && !self.at(four).is_ascii_alphanumeric() && parse(&self.b[at..four]).as_ref().is_some_and(private) {
                self.take(at..four, Class::V4);
                found = true;
            }
            at += len.max(1);
        }
        found.then_some(e)
    }

    /// `version 12.4.1.2`
    fn told_version(&self) -> bool {
        [&b"version"[..], b"ver", b"v", b"release", b"driver", b"firmware"].iter().any(|w| w.eq_ignore_ascii_case(self.previous()))
    }

    /// Hex groups joined by colons from `s` on: MAC, GUID, IPv6.
    pub fn colon_run(&mut self, s: usize) -> Option<usize> {
        let len = self.from(s).iter().take(64).take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')).count();
        let mut end = s + len;
        while end > s && self.b[end - 1] == b'.' || end > s + 2 && self.b[end - 1] == b':' && self.b[end - 2] != b':' {
            end -= 1;
        }
        if is_word(self.at(s + len)) || self.before(s).is_ascii_alphanumeric() {
            return None;
        }
        let text = std::str::from_utf8(&self.b[s..end]).ok()?;
        let groups = |size: usize| text.split(':').all(|g| g.len() == size).then(|| text.split(':').count());
        let class = match (groups(2), groups(4)) {
            (Some(6 | 20), _) => Class::Mac,
            (Some(8), _) | (_, Some(4)) => Class::Guid,
            _ => {
                let ip: Ipv6Addr = text.parse().ok()?;
                let told = ip.segments().iter().filter(|g| **g != 0).count();
                if told < 2 && text.split(':').count() < 8 && !text.starts_with("::") && !text.starts_with("fe80") {
                    return None;
                }
                Class::V6
            }
        };
        self.take(s..end, class);
        Some(end)
    }
}
