//! Compressed logs and archives say what the plain logs say; broken ones say how far they could be read.

use ncclog::analysis::{Options, Outcome, Silent, analyze};
use std::io::{Read, Write};
use std::path::Path;

const RANKS: u32 = 4;

type Pack = fn(&[u8]) -> Vec<u8>;

/// A rank's log, long enough for several blocks. The call that differs is among the last ones, which every digest keeps.
fn log(rank: u32) -> Vec<u8> {
    let mut out = String::new();
    let head = format!("node1:{}:{} [{rank}] NCCL INFO ", 100 + rank, 200 + rank);
    out += &format!("{head}NCCL version 2.27.3+cuda12.9\n{head}Using network IB\n");
    out += &format!("{head}ncclCommInitRank comm 0x7f1{rank} rank {rank} nranks {RANKS} cudaDev {rank} nvmlDev {rank} busId {rank}b000 commId 0xabc - Init START\n");
    for i in 0..8000 {
        let count = if rank == 2 && i == 7900 { 5 } else { 1024 };
        out += &format!(
            "{head}AllReduce: opCount {i:x} sendbuff 0x7f00{i:04x} recvbuff 0x7f11{i:04x} count {count} datatype 7 op 0 root 0 comm 0x7f1{rank} [nranks={RANKS}] stream 0x1\n"
        );
    }
    out.into_bytes()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn lz4(text: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut out = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn xz(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    liblzma::read::XzEncoder::new(text, 0).read_to_end(&mut out).unwrap();
    out
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bzip2::read::BzEncoder::new(text, bzip2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

fn tar(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn run(inputs: Vec<String>, max_bytes: u64) -> Outcome {
    analyze(&Options { inputs, threads: 2, block_size: 1 << 16, max_bytes, ..Options::default() }, &Silent)
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// What must not depend on how the logs are packed.
fn essence(outcome: &Outcome) -> Vec<(String, String, Vec<u64>)> {
    assert_eq!(outcome.problems, Vec::new());
    outcome.analysis.findings.iter().map(|f| (f.id.to_owned(), f.title.clone(), f.evidence.iter().map(|e| e.line).collect())).collect()
}

#[test]
fn every_packing_gives_the_findings_of_the_plain_logs() {
    let dir = tempfile::tempdir().unwrap();
    let logs: Vec<(String, Vec<u8>)> = (0..RANKS).map(|r| (format!("rank{r}.log"), log(r))).collect();
    let plain = run(logs.iter().map(|(name, text)| write(dir.path(), name, text)).collect(), 0);
    let reference = essence(&plain);
    assert!(reference.iter().any(|f| f.0 == "collective-mismatch"), "{reference:?}");
    let lines: Vec<u64> = plain.analysis.job.streams.iter().map(|s| s.lines).collect();

    let packers: [(&str, Pack); 6] = [("gz", gzip), ("lz4", lz4), ("xz", xz), ("bz2", bzip2), ("zst", zstd), ("plain", <[u8]>::to_vec)];
    for (ending, pack) in packers {
        let packed = run(logs.iter().map(|(name, text)| write(dir.path(), &format!("{name}.{ending}"), &pack(text))).collect(), 0);
        assert_eq!(essence(&packed), reference, "{ending}");
        assert_eq!(packed.analysis.job.streams.iter().map(|s| s.lines).collect::<Vec<_>>(), lines, "{ending}");

        let archive = write(dir.path(), &format!("all.tar.{ending}"), &pack(&tar(&logs)));
        let unpacked = run(vec![archive.clone()], 0);
        assert_eq!(essence(&unpacked), reference, "tar of {ending}");
        assert_eq!(unpacked.analysis.job.streams[1].path, format!("{archive}!rank1.log"));

        let inside: Vec<(String, Vec<u8>)> = logs.iter().map(|(name, text)| (format!("logs/{name}.{ending}"), pack(text))).collect();
        assert_eq!(essence(&run(vec![write(dir.path(), "inside.tar", &tar(&inside))], 0)), reference, "{ending} in tar");
    }
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let text = log(0);
    for (ending, whole) in [("gz", gzip(&text)), ("lz4", lz4(&text)), ("zst", zstd(&text)), ("tar", tar(&[("a.log".to_owned(), text.clone())]))] {
        let path = write(dir.path(), &format!("cut.{ending}"), &whole[..whole.len() * 3 / 4]);
        let outcome = run(vec![path.clone()], 0);
        assert_eq!(outcome.problems.len(), 1, "{ending}: {:?}", outcome.problems);
        assert!(outcome.problems[0].path.starts_with(&path) && outcome.problems[0].text.contains("byte"), "{:?}", outcome.problems);
        assert!(outcome.analysis.job.streams[0].nccl_lines > 100, "{ending}");
    }
}

#[test]
fn every_cut_and_every_broken_byte_of_an_archive_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let text = &log(1)[..3000];
    for whole in [gzip(text), lz4(text), xz(text), bzip2(text), zstd(text), gzip(&tar(&[("a.log".to_owned(), text.to_vec())])), tar(&[("a.log".to_owned(), text.to_vec())])] {
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            run(vec![write(dir.path(), "cut", &whole[..at])], 0);
            let mut broken = whole.clone();
            broken[at] ^= 0x55;
            run(vec![write(dir.path(), "broken", &broken)], 1 << 20);
        }
    }
}

#[test]
fn a_bomb_is_stopped_where_the_limit_says() {
    let dir = tempfile::tempdir().unwrap();
    let bomb = write(dir.path(), "bomb.gz", &gzip(&vec![b'0'; 64 << 20]));
    let outcome = run(vec![bomb], 1_000_000);
    assert_eq!(outcome.problems.len(), 1);
    assert!(outcome.problems[0].text.contains("--max-bytes"), "{:?}", outcome.problems);
    assert!(outcome.analysis.job.streams[0].bytes <= 1_000_000);
}
