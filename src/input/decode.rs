//! Compression and encoding, recognised by content.

use std::io::{self, BufReader, Read};

/// The option that limits what a compressed input may become.
pub const MAX_BYTES: &str = "--max-bytes";

/// How a file's bytes become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it stands.
    Plain,
    /// gzip, members concatenated by rotation included.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// LZ4 frames.
    Lz4,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-16, big endian.
    Utf16Be,
}

/// Recognises an encoding by a file's first bytes (64 are enough).
pub fn sniff(head: &[u8]) -> Encoding {
    match head {
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Encoding::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Encoding::Xz,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => Encoding::Bzip2,
        [0x04, 0x22, 0x4d, 0x18, ..] => Encoding::Lz4,
        [0xff, 0xfe, ..] => Encoding::Utf16Le,
        [0xfe, 0xff, ..] => Encoding::Utf16Be,
        _ => utf16_without_mark(head),
    }
}

/// ASCII text in UTF-16 has a zero in every other byte and none in the others.
fn utf16_without_mark(head: &[u8]) -> Encoding {
    let pairs: Vec<(u8, u8)> = head.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    if pairs.len() < 4 {
        return Encoding::Plain;
    }
    let text = |b: u8| b == b'\n' || b == b'\r' || b == b'\t' || (0x20..0x7f).contains(&b);
    if pairs.iter().all(|(a, b)| text(*a) && *b == 0) {
        Encoding::Utf16Le
    } else if pairs.iter().all(|(a, b)| *a == 0 && text(*b)) {
        Encoding::Utf16Be
    } else {
        Encoding::Plain
    }
}

/// A reader of decoded bytes.
pub fn decoder<'a>(encoding: Encoding, raw: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match encoding {
        Encoding::Plain => raw,
        Encoding::Gzip => inner(Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, raw))))?,
        Encoding::Zstd => inner(Box::new(zstd::stream::read::Decoder::new(raw)?))?,
        Encoding::Xz => inner(Box::new(liblzma::read::XzDecoder::new_multi_decoder(raw)))?,
        Encoding::Bzip2 => inner(Box::new(bzip2::read::MultiBzDecoder::new(raw)))?,
        Encoding::Lz4 => inner(Box::new(Lz4::new(raw)))?,
        Encoding::Utf16Le => Box::new(Utf16::new(raw, encoding_rs::UTF_16LE)),
        Encoding::Utf16Be => Box::new(Utf16::new(raw, encoding_rs::UTF_16BE)),
    })
}

/// A compressed file may hold UTF-16. After an error the decompressor is not asked again: the one of bzip2 aborts then.
fn inner<'a>(reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut reader = Guard::new(reader, u64::MAX);
    let mut head = vec![0; 64];
    let n = read_up_to(&mut reader, &mut head).unwrap_or(0);
    head.truncate(n);
    let encoding = sniff(&head);
    let whole: Box<dyn Read + 'a> = Box::new(io::Cursor::new(head).chain(reader));
    match encoding {
        Encoding::Utf16Le | Encoding::Utf16Be => decoder(encoding, whole),
        _ => Ok(whole),
    }
}

/// Fills `buffer` as far as the reader goes.
pub fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if filled == 0 => return Err(e),
            // What came before the error is used; the next read meets it again.
            Err(_) => break,
        }
    }
    Ok(filled)
}

/// Stops a reader that decodes to more than was asked for, and repeats its first error: not every decoder does.
pub struct Guard<R> {
    inner: R,
    limit: u64,
    left: u64,
    failed: Option<(io::ErrorKind, String)>,
}

impl<R: Read> Guard<R> {
    /// At most `limit` bytes of `inner`.
    pub fn new(inner: R, limit: u64) -> Self {
        Self { inner, limit, left: limit, failed: None }
    }

    fn checked_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left > 0 || buffer.is_empty() {
            let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            return self.inner.read(&mut buffer[..most]);
        }
        // The limit is no error if the text ends there.
        match self.inner.read(&mut [0])? {
            0 => Ok(0),
            _ => Err(io::Error::other(format!("the limit of {} bytes that {MAX_BYTES} sets is reached", self.limit))),
        }
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, text)) = &self.failed {
            return Err(io::Error::new(*kind, text.clone()));
        }
        match self.checked_read(buffer) {
            Ok(n) => {
                self.left -= n as u64;
                Ok(n)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.failed = Some((error.kind(), error.to_string()));
                }
                Err(error)
            }
        }
    }
}

/// The last bytes that went through a reader.
struct Tail<'a> {
    raw: Box<dyn Read + 'a>,
    last: [u8; 8],
}

impl Read for Tail<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(buffer)?;
        let new = &buffer[n.saturating_sub(8)..n];
        self.last.rotate_left(new.len());
        self.last[8 - new.len()..].copy_from_slice(new);
        Ok(n)
    }
}

/// LZ4 frames. The decoder takes an end between two blocks for the end of the frame; a whole frame has a mark there.
struct Lz4<'a>(lz4_flex::frame::FrameDecoder<Tail<'a>>);

impl<'a> Lz4<'a> {
    fn new(raw: Box<dyn Read + 'a>) -> Self {
        Self(lz4_flex::frame::FrameDecoder::new(Tail { raw, last: [0; 8] }))
    }
}

impl Read for Lz4<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        // Four zeros, and a checksum of four bytes behind them if the frame has one.
        let last = self.0.get_ref().last;
        if n == 0 && !buffer.is_empty() && last[4..] != [0; 4] && last[..4] != [0; 4] {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the LZ4 frame is cut"));
        }
        Ok(n)
    }
}

/// UTF-16 to UTF-8.
struct Utf16<'a> {
    raw: Box<dyn Read + 'a>,
    decoder: encoding_rs::Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a> Utf16<'a> {
    fn new(raw: Box<dyn Read + 'a>, encoding: &'static encoding_rs::Encoding) -> Self {
        Self { raw, decoder: encoding.new_decoder_with_bom_removal(), input: vec![0; 1 << 15], output: Vec::new(), at: 0, ended: false }
    }

    fn refill(&mut self) -> io::Result<()> {
        let n = self.raw.read(&mut self.input)?;
        self.ended = n == 0;
        self.output.clear();
        self.at = 0;
        let room = self.decoder.max_utf8_buffer_length(n).unwrap_or(1 << 17).max(16);
        self.output.resize(room, 0);
        let (_, _, written, _) = self.decoder.decode_to_utf8(&self.input[..n], &mut self.output, self.ended);
        self.output.truncate(written);
        Ok(())
    }
}

impl Read for Utf16<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.output.len() && !self.ended {
            self.refill()?;
        }
        let n = buffer.len().min(self.output.len() - self.at);
        buffer[..n].copy_from_slice(&self.output[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn decode(bytes: Vec<u8>) -> String {
        let encoding = sniff(&bytes);
        let mut out = Vec::new();
        decoder(encoding, Box::new(io::Cursor::new(bytes))).unwrap().read_to_end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_encoding_is_recognised_by_content() {
        let text = "node1:1:1 [0] NCCL INFO Using network IB\n";
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        let gz = gz.finish().unwrap();
        assert_eq!(decode([gz.clone(), gz].concat()), [text, text].concat(), "concatenated members");
        assert_eq!(decode(zstd::encode_all(text.as_bytes(), 1).unwrap()), text);
        let mut xz = Vec::new();
        liblzma::read::XzEncoder::new(text.as_bytes(), 1).read_to_end(&mut xz).unwrap();
        assert_eq!(decode(xz), text);
        let mut bz = Vec::new();
        bzip2::read::BzEncoder::new(text.as_bytes(), bzip2::Compression::fast()).read_to_end(&mut bz).unwrap();
        assert_eq!(decode(bz), text);
        let mut lz = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz.write_all(text.as_bytes()).unwrap();
        let lz = lz.finish().unwrap();
        assert_eq!(decode([lz.clone(), lz].concat()), [text, text].concat(), "concatenated frames");
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(le.clone()), text);
        assert_eq!(decode(be), text);
        assert_eq!(decode([vec![0xff, 0xfe], le].concat()), text);
        assert_eq!(decode(text.as_bytes().to_vec()), text);
    }

    #[test]
    fn a_limit_stops_what_goes_on_and_nothing_else() {
        let read = |limit: u64| {
            let mut guard = Guard::new(io::Cursor::new(b"0123456789".to_vec()), limit);
            let mut out = Vec::new();
            let first = guard.read_to_end(&mut out).is_ok();
            assert_eq!(guard.read(&mut [0; 4]).is_ok(), first, "an error is met again");
            (out.len(), first)
        };
        assert_eq!((read(4), read(10), read(11)), ((4, false), (10, true), (10, true)));
    }

    /// Fails once, and must not be asked again.
    struct Broken(bool);

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            assert!(!std::mem::replace(&mut self.0, true), "asked again after its error");
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    #[test]
    fn a_decompressor_is_not_asked_again_after_its_error() {
        let mut reader = inner(Box::new(Broken(false))).unwrap();
        for _ in 0..3 {
            assert_eq!(reader.read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_cut_frame_is_an_error_and_gives_what_it_holds() {
        let text = "node1:1:1 [0] NCCL INFO Using network IB\n".repeat(20_000);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        let mut lz = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz.write_all(text.as_bytes()).unwrap();
        let mut xz = Vec::new();
        liblzma::read::XzEncoder::new(text.as_bytes(), 1).read_to_end(&mut xz).unwrap();
        for whole in [gz.finish().unwrap(), lz.finish().unwrap(), xz, zstd::encode_all(text.as_bytes(), 1).unwrap()] {
            let cut = whole[..whole.len() * 2 / 3].to_vec();
            let encoding = sniff(&cut);
            let mut out = Vec::new();
            let result = decoder(encoding, Box::new(io::Cursor::new(cut))).and_then(|mut d| d.read_to_end(&mut out));
            assert!(result.is_err() && text.as_bytes().starts_with(&out), "{encoding:?}");
        }
    }
}
