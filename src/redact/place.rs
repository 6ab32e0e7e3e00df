//! Identities by their place: headers, wrappers, neighbours, fields with a telling name.

use super::scan::{Class, Line, Sink, in_chunk, is_word};
use super::secret;
use super::words::{self, Key};

/// How far a field's value is looked at before it is known to be one; keeps hostile lines linear.
pub(super) const LONGEST: usize = 256;

/// Ends the value of a field.
pub(super) fn ends_value(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b',' | b';' | b'&' | b')' | b'}' | b']' | b'\\' | b'<' | b'>' | b'`')
}

/// A word that may be a host's name.
pub(super) fn hostish(name: &[u8]) -> bool {
    let number = name.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    // Docker names a container by twelve hex digits, which may all be decimal ones.
    let number = number && name.len() != 12;
    let date = name.len() >= 10 && name[4] == b'-' && name[7] == b'-' && name[..4].iter().all(u8::is_ascii_digit);
    !number && !date && name.len() <= 253 && name.first().is_some_and(|b| is_word(*b)) && !words::source_file(name) && !words::never(name)
}

/// So peculiar that it needs no better witness than the word `host` or `node` before it.
fn peculiar(name: &[u8]) -> bool {
    hostish(name) && name.iter().any(u8::is_ascii_digit) && name.iter().any(u8::is_ascii_alphabetic) && !name.contains(&b'_') && !words::evidence(name) && !words::role(name)
}

pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take(20).take_while(|b| b.is_ascii_digit()).count()
}

fn quoted(text: &[u8], mut i: usize) -> usize {
    while text.get(i) == Some(&b'\\') {
        i += 1;
    }
    if matches!(text.get(i), Some(b'"' | b'\'')) { i + 1 } else { i }
}

impl<S: Sink> Line<'_, S> {
    /// The process of a header whose host ends at `e`: `host:pid:tid [dev]`, `host:pid [dev] … NCCL`.
    pub fn header(&self, s: usize, e: usize) -> Option<u32> {
        let rest = self.from(e).strip_prefix(b":")?;
        let masked = rest.iter().take_while(|b| **b == b'X').count();
        let len = digits(rest).max(masked);
        if len == 0 || !hostish(&self.b[s..e]) {
            return None;
        }
        let pid = std::str::from_utf8(&rest[..len]).ok().and_then(|t| t.parse().ok()).unwrap_or(0);
        let rest = &rest[len..];
        let (tid, rest) = match rest.strip_prefix(b":") {
            Some(tid) if digits(tid) > 0 => (true, &tid[digits(tid)..]),
            _ => (false, rest),
        };
        let named = |t: &[u8]| memchr::memmem::find(t.get(..80).unwrap_or(t), b"NCCL ").is_some();
        let rest = rest.strip_prefix(b" ").or(if tid { Some(rest) } else { None })?;
        let bracket = rest.strip_prefix(b"[").is_some_and(|d| digits(d) > 0 || d.starts_with(b"-"));
        (if tid { bracket || named(rest) } else { bracket && named(rest) }).then_some(pid)
    }

    /// What stands at the start of a line: pods, journals, the names that launchers put in front.
    pub fn front(&mut self) -> usize {
        let blank = self.b.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if self.from(blank).starts_with(b"[pod/") {
            let s = blank + 5;
            let e = self.chunk_end(s);
            if self.at(e) == b'/' {
                self.take(s..e, Class::Host);
            }
            return e;
        }
        if !is_word(self.at(blank)) {
            return blank;
        }
        let (s, dated) = self.behind_time(blank);
        let e = self.chunk_end(s);
        let rest = self.from(e);
        if e == s || !hostish(&self.b[s..e]) {
            return blank;
        }
        let host = match dated {
            Some(syslog) => self.journal(e, syslog) || rest.first() == Some(&b'/') && self.stream(e),
            None => !words::role(&self.b[s..e]) && (self.in_front(s, e) || compose(&self.b[s..e], rest)),
        };
        if !host || self.header(s, e).is_some() {
            return blank;
        }
        self.take(s..e, Class::Host);
        e
    }

    /// Where the text behind a time begins, and whether the time was syslog's.
    fn behind_time(&self, i: usize) -> (usize, Option<bool>) {
        let text = self.from(i);
        let blanks = |at: usize| at + self.from(at).iter().take_while(|b| **b == b' ').count();
        let month = text.len() > 16 && text[..3].iter().all(u8::is_ascii_alphabetic) && text[3] == b' ' && text[9] == b':' && text[12] == b':' && digits(&text[7..]) == 2;
        if month {
            let end = i + text.iter().skip(7).position(|b| *b == b' ').map_or(text.len(), |n| n + 7);
            return (blanks(end), Some(true));
        }
        let day = text.len() > 20 && digits(text) == 4 && text[4] == b'-' && digits(&text[5..]) == 2 && text[7] == b'-';
        if day {
            let len = |at: usize| self.from(at).iter().take_while(|b| b.is_ascii_digit() || matches!(b, b'T' | b':' | b'.' | b',' | b'+' | b'-' | b'Z')).count();
            let mut end = i + len(i);
            if end == i + 10 {
                end = end + 1 + len(end + 1);
            }
            return (blanks(end), Some(false));
        }
        (i, None)
    }

    /// `host unit[pid]: ` or `host unit: `, the latter behind syslog's own time or for the kernel.
    fn journal(&self, e: usize, syslog: bool) -> bool {
        let Some(unit) = self.from(e).strip_prefix(b" ") else { return false };
        let len = unit.iter().take_while(|b| in_chunk(**b) || matches!(b, b'/' | b'@' | b'(' | b')')).count();
        let rest = &unit[len..];
        let pid = rest.strip_prefix(b"[").is_some_and(|t| digits(t) > 0 && t[digits(t)..].starts_with(b"]:"));
        len > 0 && (pid || rest.starts_with(b":") && (syslog || &unit[..len] == b"kernel"))
    }

    /// `worker-2/pytorch/98 `
    fn stream(&self, e: usize) -> bool {
        let name = self.from(e).split(|b| *b == b' ').next().unwrap_or_default();
        name.iter().all(|b| in_chunk(*b) || *b == b'/') && memchr::memchr_iter(b'/', name).count() == 2
    }

    /// `node: `, `NAME | `, `NAME CONTAINER ` in front of a header.
    fn in_front(&self, s: usize, e: usize) -> bool {
        let skip = |at: usize| at + self.from(at).iter().take_while(|b| matches!(b, b' ' | b':' | b'|')).count();
        let first = skip(e);
        if first == e || self.b[s..e].iter().all(u8::is_ascii_uppercase) {
            return false;
        }
        let header = |at: usize| at < self.b.len() && self.at(self.chunk_end(at)) == b':' && self.header(at, self.chunk_end(at)).is_some();
        header(first) || self.b[s..e].contains(&b'-') && header(skip(self.chunk_end(first)))
    }

    /// A word whose neighbours say that it is a host or a user.
    pub fn placed(&mut self, s: usize, e: usize) -> Option<usize> {
        let (before, next) = (self.before(s), self.at(e));
        let name = &self.b[s..e];
        let rest = self.from(e);
        let host = match (before, next) {
            // [gpu-01]:29500, [gpu-01:4711] *** Process received signal
            (b'[', b']') => {
                hostish(name) && !words::role(name) && (4..=5).contains(&rest.strip_prefix(b"]:").map_or(0, digits)) && !in_chunk(self.at(e + 2 + digits(&self.b[e + 2..])))
            }
            (b'[', b':') => peculiar(name) && digits(&rest[1..]) > 0,
            // (gpu-01, 29500) of torch, (worker-a, rank=1, pid=9) of SkyPilot
            (b'(', b',') => {
                hostish(name) && (rest.strip_prefix(b", ").is_some_and(|t| digits(t) > 3 && t[digits(t)..].starts_with(b")")) || rest.starts_with(b", rank=") && !words::role(name))
            }
            // k2<41230>: the far end of a socket
            (_, b'<') => {
                let far = [&b"peer"[..], b"to", b"from", b"with", b"by"].contains(&self.previous());
                far && before == b' ' && hostish(name) && name.iter().any(u8::is_ascii_alphabetic) && digits(&rest[1..]) > 0 && rest[1 + digits(&rest[1..])..].starts_with(b">")
            }
            (b'@', _) => hostish(name) && name.iter().any(|b| matches!(b, b'.' | b'-') || b.is_ascii_digit()) && !words::public(name) && name.iter().any(u8::is_ascii_alphabetic),
            _ => self.told_by_word(s, e),
        };
        if host {
            self.take(s..e, Class::Host);
            return Some(e);
        }
        // `gpu-[01-04]`: the dash belongs to the names.
        let open = e + rest.iter().take_while(|b| **b == b'-').count();
        if self.at(open) == b'[' && self.folded(s, open) {
            let end = e + self.from(e).iter().position(|b| *b == b']').unwrap_or(0) + 1;
            self.take(s..end, Class::Hosts);
            return Some(end);
        }
        let mail = next == b'@' && self.from(e + 1).first().is_some_and(u8::is_ascii_alphabetic) && hostish(name) && !matches!(before, b'@' | b'/') && !words::system_user(name);
        let home = before == b'~' && matches!(next, b'/' | b' ' | 0) && hostish(name);
        if mail || home {
            self.take(s..e, Class::User);
            return Some(if home && next == b'/' { self.path(e, true) } else { e });
        }
        None
    }

    /// The word before.
    pub fn previous(&self) -> &[u8] {
        &self.b[self.prev.clone()]
    }

    /// `node gpu-01`, `host gpu-01`, slurm's `ON gpu-01` and `error: gpu-01: task`.
    fn told_by_word(&self, s: usize, e: usize) -> bool {
        if self.prev.end + 1 != s && !self.b.get(self.prev.end..s).is_some_and(|gap| matches!(gap, b": " | b" '" | b" \"")) {
            return false;
        }
        let name = &self.b[s..e];
        let word = self.previous();
        let told = [&b"host"[..], b"node", b"hostname", b"machine"].iter().any(|w| w.eq_ignore_ascii_case(word)) || word == b"ON";
        let slurm = word == b"error" && self.from(e).starts_with(b": task");
        told && peculiar(name) || slurm && hostish(name)
    }

    /// `gpu[01-04]` behind `ON`, `error:` or `node`.
    fn folded(&self, s: usize, e: usize) -> bool {
        let inner = self.from(e + 1);
        let len = inner.iter().take(400).take_while(|b| b.is_ascii_digit() || matches!(b, b'-' | b',')).count();
        let list = len > 0 && inner.get(len) == Some(&b']') && inner[..len].iter().any(|b| matches!(b, b'-' | b',')) && self.b[s].is_ascii_alphabetic();
        let word = self.previous();
        list && (word == b"ON" || word == b"node" || word == b"nodes" || word == b"error" && self.from(e + 1 + len).starts_with(b"]: task"))
    }

    /// Start of the value of the field whose name is `s..e`.
    fn value(&self, s: usize, e: usize) -> Option<(usize, bool)> {
        let closed = quoted(self.b, e);
        let blanks = |at: usize| at + self.from(at).iter().take_while(|b| **b == b' ').count();
        let mark = blanks(closed);
        let quoted_key = closed > e;
        match self.at(mark) {
            b'=' if self.at(mark + 1) != b'=' => Some((quoted(self.b, blanks(mark + 1)), true)),
            b':' => Some((quoted(self.b, blanks(mark + 1)), quoted_key)),
            b'(' if mark == e => None,
            _ if self.before(s) == b'-' && mark > e => Some((quoted(self.b, mark), true)),
            _ => self.from(e).strip_prefix(b" set by environment to ").map(|_| (e + 23, true)),
        }
    }

    /// A field with a telling name and its value; returns the value's end.
    pub fn keyed(&mut self, s: usize, e: usize) -> Option<usize> {
        let name = &self.b[s..e];
        // `--hf.token`, `kubernetes.host`, `trainer.user`
        let name = name.rsplit(|b| *b == b'.').next().unwrap_or(name);
        let key = words::key(name)?;
        if key == Key::User && self.at(e) == b'=' && self.from(e + 1).first().is_some_and(u8::is_ascii_digit) || name.eq_ignore_ascii_case(b"uid") {
            return None;
        }
        let (v, firm) = self.value(s, e)?;
        let len = self.from(v).iter().take(LONGEST).take_while(|b| !ends_value(**b)).count();
        let end = v + len;
        match key {
            Key::Secret | Key::Token => {
                if !secret::value(&self.b[v..end], key == Key::Secret) {
                    return None;
                }
                let end = secret::behind_scheme(self.b, v, end);
                let end = end + self.from(end).iter().take_while(|b| len == LONGEST && !ends_value(**b)).count();
                self.take(v..end, Class::Secret);
                Some(end)
            }
            Key::Guid => {
                let e = self.chunk_end(v);
                let hex = self.b[v..e].strip_prefix(b"0x").unwrap_or(&self.b[v..e]);
                if hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit) {
                    self.take(v..e, Class::Guid);
                    return Some(e);
                }
                None
            }
            Key::User => {
                let e = self.chunk_end(v);
                let last = matches!(self.at(e), 0 | b'"' | b'\'' | b',' | b'(' | b'\r') || firm;
                if e > v && last && !words::system_user(&self.b[v..e]) && !self.b[v..e].iter().all(u8::is_ascii_digit) && is_word(self.b[v]) {
                    self.take(v..e, Class::User);
                    return Some(e);
                }
                None
            }
            Key::Host => self.host_value(v, firm, 1),
            Key::Hosts => {
                if memchr::memchr(b'[', &self.b[v..end]).is_some() || self.from(end).starts_with(b"]") && self.b[v..end].contains(&b'[') || firm && self.b[v..].starts_with(b"[") {
                    return self.folded_value(v);
                }
                self.host_value(v, firm, 4096)
            }
        }
    }

    /// A folded list as a value: all of it up to a blank or quote.
    fn folded_value(&mut self, v: usize) -> Option<usize> {
        let len = self.from(v).iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'\\' | b';')).count();
        if !self.b[v].is_ascii_alphabetic() {
            return None;
        }
        self.take(v..v + len, Class::Hosts);
        Some(v + len)
    }

    /// `gpu-01`, `gpu-01:29500`, `gpu-01:8,gpu-02:8`. Addresses are left to the scan.
    fn host_value(&mut self, v: usize, firm: bool, most: usize) -> Option<usize> {
        let mut at = v;
        let mut end = None;
        for _ in 0..most {
            let e = self.chunk_end(at);
            let name = &self.b[at..e];
            let address = name.iter().all(|b| b.is_ascii_digit() || *b == b'.');
            let good =
                hostish(name) && !address && !words::evidence(name) && (firm || peculiar(name) || self.at(e) == 0 || self.at(e) == b'\r') && !matches!(self.at(e), b'(' | b'{');
            if !good {
                break;
            }
            self.take(at..e, Class::Host);
            end = Some(e);
            let port = self.from(e).strip_prefix(b":").map_or(0, |t| digits(t) + 1);
            if self.at(e + port) != b',' {
                break;
            }
            at = e + port + 1;
        }
        end
    }
}

/// `worker-1  | `
fn compose(name: &[u8], rest: &[u8]) -> bool {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let joined = matches!(name.get(..name.len() - digits), Some([.., b'-' | b'_']));
    let rest = rest.strip_prefix(b" ").map(<[u8]>::trim_ascii_start);
    digits > 0 && joined && rest.is_some_and(|t| t.starts_with(b"| ") || t == b"|")
}
