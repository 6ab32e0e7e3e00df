//! Reads logs as plain lines, whatever they are packed in, and writes them redacted. Memory stays bounded: a part of a
//! file is held at a time.

use crate::cli::output;
use crate::input::{self, Encoding};
use crate::redact::{Found, Redactor, Scanner};
use anyhow::{Result, anyhow};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes of a part.
const PART: usize = 1 << 20;

/// Longest line that is kept whole.
const LONGEST: usize = 8 << 20;

/// So much of a pipe is read before anything is written: names that stand further behind are still found in front.
const AHEAD: usize = 32 << 20;

/// A copy was written, of what could be read: what kept the rest from it.
pub struct Copied(pub Option<String>);

/// Cuts what a reader gives into parts that end with lines.
struct Parts<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were handed out.
    taken: usize,
    ended: bool,
    /// What ended it before its end, and after how many bytes.
    failed: Option<String>,
    bytes: usize,
}

impl<R: Read> Parts<R> {
    fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), taken: 0, ended: false, failed: None, bytes: 0 }
    }

    /// The next part, and whether it is the last; empty at the end.
    fn next(&mut self) -> io::Result<(&[u8], bool)> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let mut looked = 0;
        loop {
            if self.ended {
                self.taken = self.buffer.len();
                return Ok((&self.buffer, true));
            }
            let from = self.buffer.len();
            self.buffer.resize(from + PART, 0);
            let n = input::read_up_to(&mut self.reader, &mut self.buffer[from..])?;
            self.buffer.truncate(from + n);
            self.bytes += n;
            self.ended = n < PART;
            // Too few bytes are the end, or all that could be read before an error.
            if self.ended
                && let Err(error) = input::read_up_to(&mut self.reader, &mut [0])
            {
                self.failed = Some(format!("could be read only up to byte {} ({error}); what came before was redacted, fetch the file again for the rest", self.bytes));
            }
            let line = memchr::memrchr(b'\n', &self.buffer[looked..]).map(|p| looked + p + 1);
            looked = self.buffer.len();
            let long = self.buffer.len() >= LONGEST;
            // A line that long is cut between two words.
            let cut = line.or_else(|| long.then(|| memchr::memrchr(b' ', &self.buffer).map_or(self.buffer.len(), |p| p + 1)));
            if let Some(end) = cut.filter(|_| !self.ended) {
                self.taken = end;
                return Ok((&self.buffer[..end], false));
            }
        }
    }
}

/// Opens a log as plain text.
fn open(path: &Path) -> io::Result<Parts<Box<dyn Read>>> {
    let mut file = File::open(path)?;
    let mut head = vec![0; 4096];
    let n = input::read_up_to(&mut file, &mut head)?;
    head.truncate(n);
    let encoding = input::sniff(&head[..n.min(64)]);
    // A pipe cannot be rewound; its head is read again from memory.
    let raw: Box<dyn Read> = Box::new(io::Cursor::new(head).chain(file));
    let reader = if encoding == Encoding::Plain { raw } else { input::decoder(encoding, raw)? };
    Ok(Parts::new(reader))
}

fn check(part: &[u8]) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if input::is_tar(part) {
        return refuse("is an archive; unpack it and name the files");
    }
    if memchr::memchr(0, &part[..part.len().min(4096)]).is_some() {
        return refuse("is no text; it was left out");
    }
    Ok(())
}

/// Reads what identities a file holds.
pub fn learn(path: &Path, known: &Redactor) -> Result<Found> {
    let hint = |e: io::Error| match e.kind() {
        io::ErrorKind::InvalidData => anyhow!("{e}"),
        _ => anyhow!("cannot be read ({e}); check that it is a file and that you may read it"),
    };
    let mut found = Found::default();
    known.learn_path(&path.to_string_lossy(), &mut found);
    let mut parts = open(path).map_err(hint)?;
    let mut first = true;
    loop {
        let (part, last) = parts.next().map_err(hint)?;
        if std::mem::take(&mut first) {
            check(part).map_err(hint)?;
        }
        found.read(part, known);
        if last {
            return Ok(found);
        }
    }
}

/// Writes the redacted copy of a file.
pub fn write(from: &Path, to: &Path, redactor: &Redactor) -> Result<Copied> {
    let mut parts = open(from)?;
    output::to_file(to, |out| {
        let mut scanner = Scanner::default();
        let mut text = Vec::with_capacity(2 * PART);
        loop {
            let (part, last) = parts.next()?;
            text.clear();
            redactor.redact(part, last && !part.ends_with(b"\n"), &mut scanner, &mut text);
            out.write_all(&text)?;
            if last {
                return Ok(());
            }
        }
    })?;
    Ok(Copied(parts.failed))
}

/// Copies a pipe, redacted, as it comes. What is named only far behind its first mention is not found in that.
pub fn stream(from: &mut dyn Read, redactor: &mut Redactor, out: &mut dyn Write) -> io::Result<Copied> {
    let mut head = vec![0; 64];
    let n = input::read_up_to(&mut &mut *from, &mut head)?;
    head.truncate(n);
    let encoding = input::sniff(&head);
    let raw: Box<dyn Read + '_> = Box::new(io::Cursor::new(head).chain(from));
    let reader = if encoding == Encoding::Plain { raw } else { input::decoder(encoding, raw)? };
    let mut parts = Parts::new(reader);
    let (mut learning, mut writing) = (Found::default(), Scanner::default());
    let mut waiting: Vec<u8> = Vec::new();
    let mut begun = false;
    loop {
        let (part, last) = parts.next()?;
        learning.read(part, redactor);
        waiting.extend_from_slice(part);
        if begun || last || waiting.len() >= AHEAD {
            begun = true;
            redactor.join([learning.take()]);
            let mut text = Vec::with_capacity(waiting.len() + 1024);
            redactor.redact(&waiting, last && !waiting.ends_with(b"\n"), &mut writing, &mut text);
            out.write_all(&text)?;
            waiting.clear();
        }
        if last {
            return Ok(Copied(parts.failed));
        }
    }
}
