//! Compression and encoding, recognised by content.

use std::io::{self, BufReader, Read};

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
pub fn decoder(encoding: Encoding, raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    Ok(match encoding {
        Encoding::Plain => raw,
        Encoding::Gzip => inner(Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, raw))))?,
        Encoding::Zstd => inner(Box::new(zstd::stream::read::Decoder::new(raw)?))?,
        Encoding::Xz => inner(Box::new(liblzma::read::XzDecoder::new_multi_decoder(raw)))?,
        Encoding::Bzip2 => inner(Box::new(bzip2::read::MultiBzDecoder::new(raw)))?,
        Encoding::Utf16Le => Box::new(Utf16::new(raw, encoding_rs::UTF_16LE)),
        Encoding::Utf16Be => Box::new(Utf16::new(raw, encoding_rs::UTF_16BE)),
    })
}

/// A compressed file may hold UTF-16.
fn inner(mut reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = vec![0; 64];
    let n = read_up_to(&mut reader, &mut head).unwrap_or(0);
    head.truncate(n);
    let encoding = sniff(&head);
    let whole: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(reader));
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

/// UTF-16 to UTF-8.
struct Utf16 {
    raw: Box<dyn Read + Send>,
    decoder: encoding_rs::Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Utf16 {
    fn new(raw: Box<dyn Read + Send>, encoding: &'static encoding_rs::Encoding) -> Self {
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

impl Read for Utf16 {
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
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(le.clone()), text);
        assert_eq!(decode(be), text);
        assert_eq!(decode([vec![0xff, 0xfe], le].concat()), text);
        assert_eq!(decode(text.as_bytes().to_vec()), text);
    }
}
