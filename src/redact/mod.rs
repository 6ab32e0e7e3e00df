//! Redaction: identities become stable pseudonyms that are valid words of the same class, so that redacted logs still
//! analyse to the same findings. Works on bytes and knows nothing of what the logs mean.
//!
//! Two steps: [`Redactor::learn`] reads all texts, [`Redactor::redact`] replaces. What was learnt from any text is
//! replaced in every text. Learning may be split over threads ([`Found`]) and joined in the order of the texts.

mod address;
mod book;
mod fast;
mod form;
mod names;
mod path;
mod place;
mod scan;
mod secret;
mod store;
mod words;

#[cfg(test)]
mod tests;

pub use scan::{Class, Scanner};
pub use store::MapFile;

use ahash::{AHashMap, AHashSet};
use book::Book;
use names::Names;
use scan::Sink;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Identities that one text holds, in the order of their first places.
#[derive(Debug, Default)]
pub struct Found {
    order: Vec<(String, Class)>,
    seen: AHashMap<(Vec<u8>, Class), usize>,
    headers: Vec<(u64, BTreeSet<u32>)>,
    /// The last one: lines of one host follow each other.
    last: usize,
    scanner: Scanner,
}

/// Pids kept of one name.
const MAX_PIDS: usize = 512;

impl Found {
    /// Reads the next part of a text; it ends with a line end, or with the text.
    pub fn read(&mut self, text: &[u8], names: &Redactor) {
        let mut scanner = std::mem::take(&mut self.scanner);
        scanner.text(text, false, &names.names, &mut Learn { text, found: self });
        self.scanner = scanner;
    }

    /// What was found so far; reading goes on where it was.
    pub fn take(&mut self) -> Self {
        let scanner = std::mem::take(&mut self.scanner);
        let found = std::mem::take(self);
        self.scanner = scanner;
        found
    }

    /// Notes a name that something else found.
    pub fn add(&mut self, name: &str, class: Class) {
        self.note(name.as_bytes(), class, 0);
    }

    fn note(&mut self, name: &[u8], class: Class, pid: u32) {
        let again = self.order.get(self.last).is_some_and(|(n, c)| n.as_bytes() == name && *c == class);
        if again && pid == 0 {
            return;
        }
        let index = *self.seen.entry((name.to_vec(), class)).or_insert_with(|| {
            self.order.push((String::from_utf8_lossy(name).into_owned(), class));
            self.headers.push((0, BTreeSet::new()));
            self.order.len() - 1
        });
        self.last = index;
        if pid != 0 {
            let (headers, pids) = &mut self.headers[index];
            *headers += 1;
            if pids.len() < MAX_PIDS {
                pids.insert(pid);
            }
        }
    }
}

struct Learn<'a> {
    text: &'a [u8],
    found: &'a mut Found,
}

impl Sink for Learn<'_> {
    fn take(&mut self, span: Range<usize>, class: Class, pid: u32) {
        self.found.note(&self.text[span], class, pid);
    }
}

/// The map from identities to pseudonyms, and what it knows to look for.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    book: Book,
    names: Names,
    /// Pseudonyms of all that was found, ready to be written.
    ready: AHashMap<Class, AHashMap<Vec<u8>, String>>,
}

impl Redactor {
    /// Takes over what texts held, in their order.
    pub fn join(&mut self, found: impl IntoIterator<Item = Found>) {
        let found: Vec<Found> = found.into_iter().collect();
        for part in &found {
            for ((name, class), (headers, pids)) in part.order.iter().zip(&part.headers) {
                self.book.note(name, *class, *headers, pids);
            }
        }
        self.book.settle();
        for (name, class) in self.book.names() {
            self.names.add(name.as_bytes(), class);
        }
        self.names.settle();
        for part in found {
            for (bytes, class) in part.seen.into_keys().collect::<AHashSet<_>>() {
                let name = String::from_utf8_lossy(&bytes).into_owned();
                let pseudonym = self.book.pseudonym(&name, class);
                self.ready.entry(class).or_default().insert(bytes, pseudonym);
            }
        }
    }

    /// Learns the identities of one text.
    pub fn learn(&mut self, text: &[u8]) {
        let mut found = Found::default();
        found.read(text, self);
        self.join([found]);
    }

    /// Replaces the identities of the next part of a text. `cut`: the part's end is not the end of what was written.
    pub fn redact(&self, text: &[u8], cut: bool, scanner: &mut Scanner, out: &mut Vec<u8>) {
        let mut write = Write { redactor: self, text, done: 0, out, known_only: false };
        scanner.text(text, cut, &self.names, &mut write);
        let done = write.done;
        out.extend_from_slice(&text[done..]);
    }

    /// A text of its own, redacted.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Vec::with_capacity(text.len());
        self.redact(text.as_bytes(), false, &mut Scanner::default(), &mut out);
        if out == text.as_bytes() { Cow::Borrowed(text) } else { Cow::Owned(String::from_utf8_lossy(&out).into_owned()) }
    }

    /// A line that was not learnt. What only it holds cannot have a number of its own here and is blotted out.
    pub fn seen(&self, line: &str) -> String {
        self.text(line).into_owned()
    }

    /// Words about texts that were learnt: only what was found in them is replaced, however the rest may look.
    pub fn words<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Vec::with_capacity(text.len());
        let mut write = Write { redactor: self, text: text.as_bytes(), done: 0, out: &mut out, known_only: true };
        Scanner::default().text(text.as_bytes(), false, &self.names, &mut write);
        let done = write.done;
        out.extend_from_slice(&text.as_bytes()[done..]);
        if out == text.as_bytes() { Cow::Borrowed(text) } else { Cow::Owned(String::from_utf8_lossy(&out).into_owned()) }
    }

    /// The pseudonym of a name whose class is known.
    pub fn name(&self, name: &str, class: Class) -> String {
        if name.is_empty() { String::new() } else { self.pseudonym(name.as_bytes(), class).into_owned() }
    }

    fn is_known(&self, name: &[u8], class: Class) -> bool {
        self.ready.get(&class).is_some_and(|m| m.contains_key(name)) || self.names.has(name)
    }

    fn pseudonym(&self, name: &[u8], class: Class) -> Cow<'_, str> {
        match self.ready.get(&class).and_then(|m| m.get(name)) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(self.book.pseudonym(&String::from_utf8_lossy(name), class)),
        }
    }

    /// A word in the place of a host, as opposed to a rank's mark, a device or a file.
    pub fn may_be_host(word: &str) -> bool {
        let word = word.as_bytes();
        !words::role(word) && !words::evidence(word) && !words::never(word) && !words::source_file(word) && !words::file(word)
    }

    /// Everything that was found, with what stands in its place; in no particular order.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.ready.values().flatten().map(|(from, to)| (from.as_slice(), to.as_str()))
    }

    /// A path as a user names it. Directories are replaced; the file's name is kept, but for what is known in it.
    pub fn path(&self, path: &str) -> String {
        if path.starts_with('/') || !path.contains('/') {
            return self.text(path).into_owned();
        }
        // As if it lay in a directory that says nothing; the scan reads paths from their first slash.
        let whole = format!("./{path}");
        let redacted = self.text(&whole).into_owned();
        redacted.strip_prefix("./").map(str::to_owned).unwrap_or(redacted)
    }

    /// Learns the directories of a path.
    pub fn learn_path(&self, path: &str, found: &mut Found) {
        let whole = if path.starts_with('/') || !path.contains('/') { path.to_owned() } else { format!("./{path}") };
        found.read(whole.as_bytes(), self);
    }
}

struct Write<'a> {
    redactor: &'a Redactor,
    text: &'a [u8],
    done: usize,
    out: &'a mut Vec<u8>,
    known_only: bool,
}

impl Sink for Write<'_> {
    fn take(&mut self, span: Range<usize>, class: Class, _: u32) {
        if span.start < self.done {
            // Two readings of one piece: the first was replaced already; what sticks out of it goes, too.
            self.done = self.done.max(span.end);
            return;
        }
        if self.known_only && !self.redactor.is_known(&self.text[span.clone()], class) {
            return;
        }
        self.out.extend_from_slice(&self.text[self.done..span.start]);
        self.out.extend_from_slice(self.redactor.pseudonym(&self.text[span.clone()], class).as_bytes());
        self.done = span.end;
    }
}
