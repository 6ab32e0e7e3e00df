//! URLs and paths.

use super::place::{LONGEST, digits, ends_value, hostish};
use super::scan::{Class, Line, Sink, in_chunk};
use super::{secret, words};

impl<S: Sink> Line<'_, S> {
    /// A URL whose scheme is `s..e`.
    pub fn url(&mut self, s: usize, e: usize) -> usize {
        let mut at = e + 3;
        let authority = self.from(at).iter().take(LONGEST).take_while(|b| !ends_value(**b) && !matches!(b, b'/' | b'?' | b'#')).count();
        if let Some(sign) = memchr::memrchr(b'@', &self.b[at..at + authority]) {
            if !secret::is_redacted(&self.b[at..at + sign]) {
                self.take(at..at + sign, Class::Secret);
            }
            at += sign + 1;
        }
        let bucket = matches!(&self.b[s..e], b"s3" | b"gs" | b"hdfs" | b"abfs" | b"wandb");
        let end = self.chunk_end(at);
        let host = &self.b[at..end];
        let public = words::public(host);
        if host.is_empty() || !hostish(host) && !bucket {
            // An address, which the scan reads; or a file.
            return if self.at(at) == b'/' { self.path(at, false) } else { at };
        }
        if public {
            self.known(at, end);
        } else {
            self.take(at..end, if bucket { Class::Dir } else { Class::Host });
        }
        let port = self.from(end).strip_prefix(b":").map_or(0, |t| digits(t) + 1);
        let behind = end + port;
        let private = !public || host.ends_with(b"huggingface.co");
        if private && self.at(behind) == b'/' { self.path(behind, true) } else { behind }
    }

    /// A slash: the start of a path, if no word stands before it.
    pub fn slash(&mut self, i: usize) -> usize {
        let before = self.before(i);
        let flag = self.prev.end == i && self.before(self.prev.start) == b'-' && matches!(self.previous(), b"I" | b"L");
        let open = !in_chunk(before) && !matches!(before, b')' | b']' | b'}' | b'>') || before == b'.' || flag;
        if open && in_chunk(self.at(i + 1)) || self.from(i + 1).starts_with(b"$") { self.path(i, matches!(before, b'.' | b'~')) } else { i + 1 }
    }

    /// Reads a path from its first slash. `relative`: its first directory is no root.
    pub fn path(&mut self, i: usize, relative: bool) -> usize {
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut at = i;
        loop {
            // JSON of some writers escapes slashes.
            let slash = at + self.from(at).iter().take_while(|b| **b == b'\\').count();
            if self.at(slash) != b'/' {
                break;
            }
            let s = slash + 1;
            let len = self.from(s).iter().take_while(|b| in_chunk(**b) || matches!(b, b'+' | b'%' | b'~' | b'=' | b'$' | b'{' | b'}' | b'@' | b'*' | b'#')).count();
            parts.push((s, s + len));
            at = s + len;
        }
        self.components(&parts, relative);
        at.max(i + 1)
    }

    fn components(&mut self, parts: &[(usize, usize)], relative: bool) {
        let name = |n: usize| parts.get(n).map_or(&[][..], |(s, e)| &self.b[*s..*e]);
        let system = !relative && (parts.len() < 2 || words::system_root(name(0), name(1)));
        let home = !relative && words::homes(name(0));
        let mut inside = false;
        for (n, (s, e)) in parts.iter().enumerate() {
            let mut e = *e;
            while e > *s && matches!(self.b[e - 1], b'.' | b'-') {
                e -= 1;
            }
            let part = &self.b[*s..e];
            inside |= matches!(part, b"site-packages" | b"dist-packages" | b"csrc");
            let last = n + 1 == parts.len();
            let kept = system
                || inside
                || words::plain_dir(part)
                || last && words::file(part)
                || part.iter().all(|b| !b.is_ascii_alphanumeric())
                || part.starts_with(b"$")
                || part.starts_with(b"python3");
            if home && n == 1 && !words::system_user(part) && !part.is_empty() {
                self.take(*s..e, Class::User);
            } else if kept {
                self.known(*s, e);
            } else if let Some(class) = self.names.get(part) {
                self.take(*s..e, class);
            } else {
                self.take(*s..e, Class::Dir);
            }
        }
    }
}
