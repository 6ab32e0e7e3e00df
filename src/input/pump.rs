//! Readers that run beside the parsing: standard input, pipes, compressed files and archives.
//!
//! Each source has a thread that decodes it and sends its blocks into one bounded channel; who takes them gives the
//! buffers back. Memory is bounded by the channel, whatever a source decodes to.

use super::archive;
use super::decode::{Guard, decoder, read_up_to, sniff};
use super::{Span, StreamBlocks};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What begins so is no text: it is handed over whole instead of in blocks.
pub const WHOLE: &[u8] = b"ncclog.digest/";

/// Most bytes that are handed over whole.
const MAX_WHOLE: u64 = 1 << 30;

/// What a source sends.
#[derive(Debug)]
pub enum Pumped {
    /// A member of an archive begins: its name.
    Member(String),
    /// A block of the current stream.
    Block(Vec<u8>, Span),
    /// The current stream is no text and was read whole: it begins with [`WHOLE`].
    Whole(Vec<u8>),
    /// The current stream is over: its decoded bytes, and what went wrong.
    End(u64, Option<String>),
    /// The source is over, and what went wrong with the archive itself.
    Closed(Option<String>),
}

/// The running readers.
pub struct Pumps {
    sender: SyncSender<(usize, Pumped)>,
    receiver: Receiver<(usize, Pumped)>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    block_size: usize,
    max_bytes: u64,
    started: usize,
    running: usize,
}

impl Pumps {
    /// No reader yet. At most `room` blocks wait; each source gives at most `max_bytes` decoded bytes (0: no limit).
    pub fn new(room: usize, block_size: usize, max_bytes: u64) -> Self {
        let (sender, receiver) = sync_channel(room);
        Self { sender, receiver, spare: Arc::default(), block_size, max_bytes, started: 0, running: 0 }
    }

    /// Readers that are not done.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Starts to read a source; its number, and whether it is an archive, whose members come one by one.
    pub fn start(&mut self, raw: Box<dyn Read + Send>) -> io::Result<(usize, bool)> {
        let number = self.started;
        let (tell, kind) = sync_channel(1);
        let sink = Sink { number, sender: self.sender.clone(), spare: Arc::clone(&self.spare), block_size: self.block_size, tell: Some(tell), open: true };
        let limit = if self.max_bytes == 0 { u64::MAX } else { self.max_bytes };
        thread::Builder::new().name("decode".to_owned()).spawn(move || pump(raw, limit, sink))?;
        self.started += 1;
        self.running += 1;
        // A reader that ended without a word has sent why.
        Ok((number, kind.recv().unwrap_or(false)))
    }

    /// The next piece of any source; with `wait`, as soon as there is one.
    pub fn next(&mut self, wait: bool) -> Option<(usize, Pumped)> {
        if self.running == 0 {
            return None;
        }
        let got = if wait { self.receiver.recv().ok() } else { self.receiver.try_recv().ok() }?;
        if matches!(got.1, Pumped::Closed(_)) {
            self.running -= 1;
        }
        Some(got)
    }

    /// Takes a used buffer back.
    pub fn give_back(&self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}

/// The sending side of a source.
pub(super) struct Sink {
    number: usize,
    sender: SyncSender<(usize, Pumped)>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    block_size: usize,
    /// Waits to hear whether the source is an archive.
    tell: Option<SyncSender<bool>>,
    open: bool,
}

impl Sink {
    /// Says whether the source is an archive.
    fn tell(&mut self, archive: bool) {
        if let Some(tell) = self.tell.take() {
            // Nobody waits only where the whole analysis is given up.
            let _ = tell.send(archive);
        }
    }

    /// Sends a piece; false if nobody listens any more.
    pub fn send(&mut self, piece: Pumped) -> bool {
        self.open &= !matches!(piece, Pumped::Closed(_));
        self.sender.send((self.number, piece)).is_ok()
    }

    /// Sends a stream's blocks and its end; false if nobody listens any more.
    pub fn blocks(&mut self, mut reader: &mut dyn Read, whole: impl FnOnce(u64) -> Option<String>) -> bool {
        let mut head = vec![0; WHOLE.len()];
        // An error is met again by the reader of the whole.
        let n = read_up_to(&mut reader, &mut head).unwrap_or(0);
        head.truncate(n);
        if head == WHOLE {
            return self.whole(head, reader);
        }
        let mut blocks = StreamBlocks::new(Box::new(io::Cursor::new(head).chain(reader)), self.block_size);
        loop {
            let mut buffer = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
            match blocks.next(&mut buffer) {
                Ok(Some(span)) => {
                    if !self.send(Pumped::Block(buffer, span)) {
                        return false;
                    }
                }
                Ok(None) => return self.send(Pumped::End(blocks.bytes(), whole(blocks.bytes()))),
                Err(error) => {
                    // The limit is the user's own, and no other copy of the file gets past it.
                    let rest = if error.to_string().contains(super::decode::MAX_BYTES) { "raise it for the rest" } else { "fetch the file again for the rest" };
                    let text = format!("could be read only up to byte {} ({error}); what came before was analysed, {rest}", blocks.bytes());
                    return self.send(Pumped::End(blocks.bytes(), Some(text)));
                }
            }
        }
    }
}

impl Sink {
    /// Sends what is no text; false if nobody listens any more.
    fn whole(&mut self, mut bytes: Vec<u8>, reader: &mut dyn Read) -> bool {
        let problem = match reader.take(MAX_WHOLE).read_to_end(&mut bytes) {
            Ok(_) => None,
            Err(error) => Some(format!("could be read only up to byte {} ({error}); fetch the file again", bytes.len())),
        };
        let length = bytes.len() as u64;
        (problem.is_some() || self.send(Pumped::Whole(bytes))) && self.send(Pumped::End(length, problem))
    }
}

impl Drop for Sink {
    /// A decoder that panics on a broken file must not leave the others waiting for it.
    fn drop(&mut self) {
        self.tell = None;
        if self.open {
            self.send(Pumped::Closed(Some("could not be decoded; what came before was analysed".to_owned())));
        }
    }
}

/// Reads one source to its end.
fn pump(mut raw: Box<dyn Read + Send>, limit: u64, mut sink: Sink) {
    let mut head = vec![0; 64];
    // An error is met again by the reader of the whole.
    let n = read_up_to(&mut raw, &mut head).unwrap_or(0);
    head.truncate(n);
    let encoding = sniff(&head);
    let decoded = match decoder(encoding, Box::new(io::Cursor::new(head).chain(raw))) {
        Ok(decoded) => decoded,
        Err(error) => {
            sink.tell(false);
            sink.send(Pumped::End(0, Some(format!("cannot be decoded ({error}); fetch the file again"))));
            sink.send(Pumped::Closed(None));
            return;
        }
    };
    let mut reader = Guard::new(decoded, limit);
    let mut head = vec![0; archive::HEAD];
    let n = read_up_to(&mut reader, &mut head).unwrap_or(0);
    head.truncate(n);
    let is_archive = archive::is_tar(&head);
    sink.tell(is_archive);
    let mut whole = io::Cursor::new(head).chain(reader);
    let problem = if is_archive {
        archive::members(&mut whole, &mut sink)
    } else {
        sink.blocks(&mut whole, |_| None);
        None
    };
    sink.send(Pumped::Closed(problem));
}
