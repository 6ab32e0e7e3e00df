//! JSON objects written straight into a buffer: events come by the million.

use crate::line::{Clock, Time, civil_date};
use std::fmt::Write as _;
use std::io::Write as _;

/// One object, one line.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    /// Begins an object.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn key(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A value that needs no escapes.
    pub fn word(&mut self, name: &str, value: &str) {
        self.key(name);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// Any text.
    pub fn text(&mut self, name: &str, value: &[u8]) {
        self.key(name);
        escape(value, self.out);
    }

    /// A number.
    pub fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        decimal(value, self.out);
    }

    /// A number with sign.
    pub fn signed(&mut self, name: &str, value: i64) {
        self.key(name);
        if value < 0 {
            self.out.push(b'-');
        }
        decimal(value.unsigned_abs(), self.out);
    }

    /// An address or id, as the library prints it.
    pub fn hex(&mut self, name: &str, value: u64) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.key(name);
        self.out.extend_from_slice(b"\"0x");
        let nibbles = (64 - value.leading_zeros()).div_ceil(4).max(1);
        self.out.extend((0..nibbles).rev().map(|n| DIGITS[(value >> (4 * n)) as usize & 15]));
        self.out.push(b'"');
    }

    /// True or false.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.key(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Members that were written before.
    pub fn raw(&mut self, members: &[u8]) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.extend_from_slice(members);
    }

    /// A time: as a date where the line has one, always with its clock.
    pub fn time(&mut self, time: Time) {
        if time.clock == Clock::Date {
            self.key("time");
            let _ = write!(self.out, "\"{}\"", date(time.micros));
        }
        self.word("clock", clock_name(time.clock));
        self.signed("micros", time.micros);
    }

    /// Begins an object within.
    pub fn open(&mut self, name: &str) {
        self.key(name);
        self.out.push(b'{');
        self.first = true;
    }

    /// Ends it.
    pub fn close(&mut self) {
        self.out.push(b'}');
        self.first = false;
    }

    /// Ends the line with the record's text.
    pub fn end(mut self, text: &[u8]) {
        self.text("text", text);
        self.out.extend_from_slice(b"}\n");
    }
}

fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Date => "date",
        Clock::YearDay => "year_day",
        Clock::Day => "day",
        Clock::Boot => "boot",
    }
}

fn date(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    let (year, month, day) = civil_date(days);
    let seconds = rest / 1_000_000;
    let mut out = String::with_capacity(26);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, rest % 1_000_000);
    out
}

fn decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a JSON string. What is no UTF-8 is replaced; what a terminal would obey is escaped.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if text.iter().fold(true, |plain, b| plain & matches!(b, 0x20..=0x7e) && (*b != b'"') && (*b != b'\\')) {
        out.extend_from_slice(text);
    } else {
        for c in String::from_utf8_lossy(text).chars() {
            match c {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                c if c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}') => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    out.push(b'"');
}

/// `"file":"…"` for the stream's name.
pub fn quoted(name: &[u8]) -> String {
    let mut out = b"\"file\":".to_vec();
    escape(name, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Members of a source: `"rank":3,"host":"node1",…`.
pub fn source(rank: Option<u32>, host: &[u8], pid: u32, tid: u32, dev: Option<u16>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"\"rank\":");
    match rank {
        Some(rank) => decimal(u64::from(rank), out),
        None => out.extend_from_slice(b"null"),
    }
    if !host.is_empty() {
        out.extend_from_slice(b",\"host\":");
        escape(host, out);
    }
    for (name, value) in [(",\"pid\":", u64::from(pid)), (",\"tid\":", u64::from(tid))] {
        if value > 0 {
            out.extend_from_slice(name.as_bytes());
            decimal(value, out);
        }
    }
    if let Some(dev) = dev {
        out.extend_from_slice(b",\"device\":");
        decimal(u64::from(dev), out);
    }
}
