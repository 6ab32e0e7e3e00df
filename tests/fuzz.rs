//! Fuzz targets, by bolero on stable Rust: a short run as tests; `NCCLOG_FUZZ_SECONDS=600 cargo test --release --test fuzz`
//! runs each of them that long.

use bumpalo::Bump;
use ncclog::analysis::{Options, Silent, analyze, analyze_bytes};
use ncclog::{event, line};
use std::io::{Read, Write};
use std::time::Duration;

/// So many rounds, or as long as the environment asks for.
macro_rules! fuzz {
    ($rounds:literal, $body:expr) => {
        match std::env::var("NCCLOG_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()) {
            Some(seconds) => bolero::check!().with_test_time(Duration::from_secs(seconds)).for_each($body),
            None => bolero::check!().with_iterations($rounds).for_each($body),
        }
    };
}

/// Pieces that reach deeper than noise.
const PIECES: [&str; 14] = [
    "node1:10:11 [0] NCCL INFO ",
    "node1:10:11 [0] ib.cc:10 NCCL WARN ",
    "AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x7f1 [nranks=2] stream 0x3\n",
    "ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START\n",
    "Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM\n",
    "Using network IB\n",
    "[rank3]: ",
    "[1,3]<stdout>:",
    "{\"log\":\"",
    "\\n\",\"stream\":\"stderr\"}\n",
    "\r",
    "\0\0",
    "\u{1b}[36m",
    "NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129\n",
];

/// Noise in which the high bytes stand for pieces.
fn text(noise: &[u8]) -> Vec<u8> {
    noise.iter().flat_map(|b| if *b >= 0xe0 { PIECES[*b as usize % PIECES.len()].as_bytes().to_vec() } else { vec![*b] }).collect()
}

#[test]
fn lines() {
    fuzz!(3000, |noise: &[u8]| {
        let text = text(noise);
        let arena = Bump::new();
        let newlines = line::records(&text, &arena, |record| assert!(record.text.len() <= line::MAX_LINE * 2));
        assert_eq!(newlines as usize, memchr::memchr_iter(b'\n', &text).count());
    });
}

#[test]
fn events() {
    fuzz!(3000, |noise: &[u8]| {
        let text = text(noise);
        let arena = Bump::new();
        line::records(&text, &arena, |record| {
            let _ = event::parse(&record);
        });
        if let Some((call, len)) = event::quick_collective(&text, 0, &mut event::Tails::default()) {
            assert_eq!(event::parse_collective(&text[..len]), Some(call));
        }
    });
}

/// A text in every format.
fn packed() -> Vec<Vec<u8>> {
    let text = PIECES.concat().repeat(20);
    let all = |mut reader: Box<dyn Read + '_>| {
        let mut out = Vec::new();
        reader.read_to_end(&mut out).expect("memory");
        out
    };
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(text.as_bytes()).expect("memory");
    vec![
        all(Box::new(flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::fast()))),
        all(Box::new(bzip2::read::BzEncoder::new(text.as_bytes(), bzip2::Compression::fast()))),
        all(Box::new(liblzma::read::XzEncoder::new(text.as_bytes(), 1))),
        zstd::encode_all(text.as_bytes(), 1).expect("memory"),
        lz4.finish().expect("memory"),
    ]
}

/// Decodes as far as it goes, and asks twice more after an error.
fn unpack(bytes: &[u8]) {
    if let Ok(decoded) = ncclog::input::decoder(ncclog::input::sniff(bytes), Box::new(bytes)) {
        let mut decoded = decoded.take(1 << 20);
        let _ = (0..3).map(|_| decoded.read_to_end(&mut Vec::new())).find(Result::is_ok);
    }
}

#[test]
fn decoders() {
    const MAGIC: [&[u8]; 5] = [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh91AY&SY", b"\x04\x22\x4d\x18"];
    let packed = packed();
    fuzz!(1000, |noise: &[u8]| {
        let Some((first, rest)) = noise.split_first() else { return };
        let format = *first as usize % MAGIC.len();
        unpack(&[MAGIC[format], rest].concat());
        // What is right but for a few bytes gets further than noise.
        let mut bytes = packed[format].clone();
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] ^= change[2];
        }
        unpack(&bytes);
    });
}

#[test]
fn whole() {
    fuzz!(300, |noise: &[u8]| {
        let text = text(noise);
        let (front, back) = text.split_at(text.len() / 2);
        let analysis = analyze_bytes(&[("a.log", front), ("b.log", back)]);
        let mut out = Vec::new();
        ncclog::report::json::write(&analysis, &mut out).expect("memory");
        serde_json::from_slice::<serde_json::Value>(&out).expect("JSON");
    });
}

#[test]
fn files() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("log");
    fuzz!(100, |noise: &[u8]| {
        std::fs::write(&path, text(noise)).expect("writable");
        analyze(&Options { inputs: vec![path.display().to_string()], threads: 1, block_size: 37, max_bytes: 1 << 20, ..Options::default() }, &Silent);
    });
}
