//! One file by its name, whatever happens to the file behind it.

use super::{Extra, Lines, Stream};
use crate::input::{Encoding, decoder, sniff};
use ahash::AHashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes by which a file is recognised: the first ones, and the last ones before the reading position.
const PRINT: usize = 64;
/// Bytes read at once.
const CHUNK: usize = 1 << 20;
/// Bytes read of one file before others get their turn.
const TURN: u64 = 16 << 20;
/// A file that lost its name is closed when nobody has written to it for so long: open, it takes room on its disk.
const KEEP: Duration = Duration::from_secs(60);
/// Files without a name that are kept open for one name.
const MAX_PREVIOUS: usize = 4;

/// Device and inode.
pub type Id = (u64, u64);

/// How far a file was read, and how its bytes look there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Print {
    /// Reading position.
    pub position: u64,
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes before the position.
    tail: Vec<u8>,
}

impl Print {
    fn extend(&mut self, chunk: &[u8]) {
        self.position += chunk.len() as u64;
        let missing = PRINT.saturating_sub(self.head.len());
        self.head.extend_from_slice(&chunk[..chunk.len().min(missing)]);
        self.tail.extend_from_slice(&chunk[chunk.len().saturating_sub(PRINT)..]);
        let extra = self.tail.len().saturating_sub(PRINT);
        self.tail.drain(..extra);
    }

    /// Whether `file` still holds what was read of it.
    pub fn fits(&self, file: &File) -> bool {
        let same = |bytes: &[u8], at: u64| {
            let mut now = [0; PRINT];
            let now = &mut now[..bytes.len()];
            file.read_exact_at(now, at).is_ok() && now == bytes
        };
        same(&self.tail, self.position - self.tail.len() as u64) && same(&self.head, 0)
    }
}

/// Files that were read so far, under any name.
pub type Known = AHashMap<Id, Print>;

/// A file that is being read.
#[derive(Debug)]
struct Open {
    /// Closed between two looks where there are more files than the system lets us open.
    file: Option<File>,
    id: Id,
    print: Print,
    changed: (i64, i64),
    lines: Lines,
    decoder: Option<encoding_rs::Decoder>,
    /// Another name's stream reads it, or it was read as a whole: nothing more is read of it here.
    done: bool,
    /// The file is as it was at the last look.
    idle: bool,
    grown: Instant,
}

/// What a look at a file brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// New bytes were folded.
    pub grew: bool,
    /// There are more, which the next look reads.
    pub more: bool,
    /// The name is a directory's.
    pub folder: bool,
    /// Another file stands behind the name.
    pub met: bool,
}

/// The name leads nowhere, or the server has forgotten the open file.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::StaleNetworkFileHandle)
}

/// A name that is followed.
pub struct Tail {
    /// The name.
    pub path: PathBuf,
    /// What was folded.
    pub stream: Stream,
    current: Option<Open>,
    previous: Vec<Open>,
    restarts: u64,
    gaps: u64,
    /// First bytes of the files that were read under this name, newest last.
    pub heads: Vec<Vec<u8>>,
    /// When bytes came last.
    pub grown: Instant,
    /// There was a file at any time.
    pub seen: bool,
}

impl Tail {
    /// Follows `path` as stream `id`.
    pub fn new(id: u32, path: PathBuf, extra: Extra) -> Self {
        let stream = Stream::new(id, path.display().to_string()).with(extra);
        Self { path, stream, current: None, previous: Vec::new(), restarts: 0, gaps: 0, heads: Vec::new(), grown: Instant::now(), seen: false }
    }

    /// Looks at the file behind the name and folds what is new. `keep` says that it may stay open.
    pub fn look(&mut self, known: &Known, keep: bool, buffer: &mut Vec<u8>) -> Seen {
        let mut seen = Seen::default();
        let mut problem = None;
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_dir() => seen.folder = true,
            Ok(meta) => match self.meet(&meta, known) {
                Ok(met) => seen.met = met,
                Err(error) if is_gone(&error) => {}
                Err(error) => problem = Some(format!("cannot be read ({error}); check that you may read it")),
            },
            Err(error) if is_gone(&error) => self.lose(),
            Err(error) => problem = Some(format!("cannot be looked at ({error}); what was read before was analysed")),
        }
        for open in self.previous.iter_mut().chain(&mut self.current) {
            match open.read(&self.path, &mut self.stream, buffer) {
                Ok((grew, more)) => {
                    seen.grew |= grew;
                    seen.more |= more;
                }
                Err(error) if is_gone(&error) => open.file = None,
                Err(error) => problem = Some(format!("could not be read around byte {} ({error}); what was read was analysed", open.print.position)),
            }
            if !keep {
                open.file = None;
            }
        }
        self.let_go();
        if problem.is_some() || self.current.as_ref().is_none_or(|o| !o.done) {
            self.stream.fail(problem);
        }
        if seen.grew {
            self.grown = Instant::now();
            self.remember();
        }
        seen
    }

    /// The name leads to a file: the one that is known, the same one cut short, or another (then the answer is true).
    fn meet(&mut self, meta: &Metadata, known: &Known) -> io::Result<bool> {
        let id = (meta.dev(), meta.ino());
        let changed = (meta.mtime(), meta.mtime_nsec());
        if let Some(open) = self.current.as_mut().filter(|o| o.id == id) {
            // Asking costs as much as reading; with thousands of files both count.
            open.idle = open.done || (open.changed == changed && open.print.position == meta.len());
            if open.idle {
                return Ok(false);
            }
            open.changed = changed;
            open.handle(&self.path)?;
            let whole = meta.len() >= open.print.position && open.file.as_ref().is_some_and(|file| open.print.fits(file));
            if open.print.position == 0 || whole {
                return Ok(false);
            }
            // Cut and perhaps written anew. What stood there between the last look and the cut was never seen.
            open.lines.end(&mut self.stream);
            let file = open.file.take();
            *open = Open { file, changed, ..Open::new(id) };
            open.begin(&self.path)?;
            self.restarts += 1;
            self.gaps += 1;
            self.remark();
            return Ok(false);
        }
        let mut open = Open { changed, ..Open::new(id) };
        let file = open.handle(&self.path)?;
        // The name may have moved on since.
        let meta = file.metadata()?;
        open.id = (meta.dev(), meta.ino());
        let file = open.handle(&self.path)?;
        open.done = known.get(&(meta.dev(), meta.ino())).is_some_and(|print| print.position > 0 && print.fits(file));
        open.begin(&self.path)?;
        if self.seen {
            self.lose();
            self.restarts += 1;
            self.remark();
        }
        self.seen = true;
        self.current = Some(open);
        Ok(true)
    }

    /// The name leads nowhere, or elsewhere: the file that it named may still be written.
    fn lose(&mut self) {
        let Some(mut open) = self.current.take().filter(|o| !o.done) else { return };
        open.idle = false;
        // It may have been cut short and written anew since the last look, before it lost its name.
        let cut = open.file.as_ref().and_then(|file| Some((file.metadata().ok()?, file))).is_some_and(|(meta, file)| meta.len() < open.print.position || !open.print.fits(file));
        if cut {
            open.lines.end(&mut self.stream);
            let file = open.file.take();
            open = Open { file, ..Open::new(open.id) };
            self.restarts += 1;
            self.gaps += 1;
            self.remark();
        }
        if open.file.is_some() {
            self.previous.push(open);
            return;
        }
        open.lines.end(&mut self.stream);
        self.gaps += 1;
        self.remark();
    }

    /// Closes files without a name that nobody writes any more.
    fn let_go(&mut self) {
        let excess = self.previous.len().saturating_sub(MAX_PREVIOUS);
        for (i, open) in self.previous.iter_mut().enumerate() {
            if i < excess || open.file.is_none() || open.grown.elapsed() > KEEP {
                open.lines.end(&mut self.stream);
                open.done = true;
            }
        }
        self.previous.retain(|o| !o.done);
    }

    /// Keeps the first bytes of what is read now: a copy of it may appear under another name.
    fn remember(&mut self) {
        let Some(head) = self.current.as_ref().map(|o| &o.print.head).filter(|h| !h.is_empty()) else { return };
        if self.heads.last().is_some_and(|last| head.starts_with(last)) {
            self.heads.pop();
        }
        self.heads.push(head.clone());
        let excess = self.heads.len().saturating_sub(MAX_PREVIOUS);
        self.heads.drain(..excess);
    }

    fn remark(&mut self) {
        let gap = if self.gaps > 0 { "; lines that were written right before a file was cut short may be missing" } else { "" };
        let times = if self.restarts == 1 { "once".to_owned() } else { format!("{} times", self.restarts) };
        self.stream.remark =
            Some(format!("began anew {times} while it was followed (rotated, truncated or made again); its line numbers count from the first line that was followed{gap}"));
    }

    /// The files of this name and how far each was read.
    pub fn prints(&self) -> impl Iterator<Item = (Id, &Print)> {
        self.previous.iter().chain(&self.current).filter(|o| !o.done).map(|o| (o.id, &o.print))
    }

    /// Lines whose ends have not been written.
    pub fn unfinished(&self) -> Vec<&[u8]> {
        self.previous.iter().chain(&self.current).map(|o| o.lines.rest()).filter(|r| !r.is_empty()).collect()
    }
}

impl Open {
    fn new(id: Id) -> Self {
        Self { file: None, id, print: Print::default(), changed: (0, 0), lines: Lines::default(), decoder: None, done: false, idle: false, grown: Instant::now() }
    }

    fn handle(&mut self, path: &Path) -> io::Result<&File> {
        if self.file.is_none() {
            let file = File::open(path)?;
            let meta = file.metadata()?;
            if self.print.position > 0 && (meta.dev(), meta.ino()) != self.id {
                // The name has moved on since it was looked at; the next look sees that.
                return Err(io::ErrorKind::NotFound.into());
            }
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Looks at the first bytes: text in UTF-16 is decoded.
    fn begin(&mut self, path: &Path) -> io::Result<()> {
        let mut head = [0; PRINT];
        let n = self.handle(path)?.read_at(&mut head, 0)?;
        self.decoder = match sniff(&head[..n]) {
            Encoding::Utf16Le => Some(encoding_rs::UTF_16LE.new_decoder_with_bom_removal()),
            Encoding::Utf16Be => Some(encoding_rs::UTF_16BE.new_decoder_with_bom_removal()),
            _ => None,
        };
        Ok(())
    }

    /// Folds what is new, at most one turn's worth. Returns whether anything was, and whether there is more.
    fn read(&mut self, path: &Path, stream: &mut Stream, buffer: &mut Vec<u8>) -> io::Result<(bool, bool)> {
        if self.done || self.idle {
            return Ok((false, false));
        }
        let start = self.print.position;
        buffer.resize(CHUNK, 0);
        while self.print.position - start < TURN {
            let position = self.print.position;
            let n = match self.handle(path)?.read_at(buffer, position) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            self.grown = Instant::now();
            if position == 0 && matches!(sniff(&buffer[..n.min(PRINT)]), Encoding::Gzip | Encoding::Zstd | Encoding::Xz | Encoding::Bzip2) {
                self.print.extend(&buffer[..n]);
                self.unpack(path, stream, buffer)?;
                return Ok((true, false));
            }
            self.print.extend(&buffer[..n]);
            match &mut self.decoder {
                None => self.lines.feed(&buffer[..n], stream),
                Some(decoder) => {
                    let mut text = vec![0; decoder.max_utf8_buffer_length(n).unwrap_or(4 * n + 16)];
                    let (_, _, written, _) = decoder.decode_to_utf8(&buffer[..n], &mut text, false);
                    self.lines.feed(&text[..written], stream);
                }
            }
            if n < CHUNK {
                break;
            }
        }
        let read = self.print.position - start;
        Ok((read > 0, read >= TURN))
    }

    /// A compressed file is no log that grows: it is read as a whole, once.
    fn unpack(&mut self, path: &Path, stream: &mut Stream, buffer: &mut [u8]) -> io::Result<()> {
        self.done = true;
        let encoding = sniff(&self.print.head);
        let mut reader = decoder(encoding, Box::new(File::open(path)?))?;
        stream.remark = Some("is compressed: it was read once, as it was at the start".to_owned());
        loop {
            let n = reader.read(buffer)?;
            if n == 0 {
                break;
            }
            self.lines.feed(&buffer[..n], stream);
        }
        self.lines.end(stream);
        Ok(())
    }
}
