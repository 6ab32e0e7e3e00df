//! Laws of the whole: the result does not depend on threads, block size or file order, and no input panics.

use ncclog::analysis::{Options, Silent, analyze, analyze_bytes};
use proptest::prelude::*;
use std::path::PathBuf;

fn json(inputs: Vec<String>, threads: usize, block_size: usize) -> String {
    let outcome = analyze(&Options { inputs, threads, block_size, ..Options::default() }, &Silent);
    let mut out = Vec::new();
    ncclog::report::json::write(&outcome.analysis, &mut out).expect("memory");
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn fixture_logs() -> Vec<Vec<String>> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    let files = |folder: &PathBuf| {
        let mut list: Vec<String> = std::fs::read_dir(folder)
            .expect("folder")
            .filter_map(Result::ok)
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e != "json"))
            .map(|p| p.display().to_string())
            .collect();
        list.sort();
        list
    };
    folders.iter().map(files).filter(|f| !f.is_empty()).collect()
}

#[test]
fn threads_block_size_and_file_order_do_not_matter() {
    for logs in fixture_logs() {
        let reference = json(logs.clone(), 1, 0);
        let reversed: Vec<String> = logs.iter().rev().cloned().collect();
        assert_eq!(json(reversed, 2, 0), reference, "{logs:?}: order or threads");
        for size in [1 << 16, 777] {
            assert_eq!(json(logs.clone(), 2, size), reference, "{logs:?}: blocks of {size}");
        }
    }
}

/// A compressed log and one with CRLF line ends say the same, but for sizes and offsets.
#[test]
fn encodings_give_the_same_findings() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for logs in fixture_logs().into_iter().take(24) {
        let findings = |paths: Vec<String>| {
            let outcome = analyze(&Options { inputs: paths, ..Options::default() }, &Silent);
            outcome.analysis.findings.iter().map(|f| (f.id, f.title.clone(), f.evidence.iter().map(|e| e.line).collect::<Vec<_>>())).collect::<Vec<_>>()
        };
        let reference = findings(logs.clone());
        let write = |tag: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| -> Vec<String> {
            let folder = dir.path().join(tag);
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("folder");
            let copy = |path: &String| {
                let target = folder.join(std::path::Path::new(path).file_name().expect("named"));
                std::fs::write(&target, change(std::fs::read(path).expect("readable"))).expect("writable");
                target.display().to_string()
            };
            logs.iter().map(copy).collect()
        };
        assert_eq!(findings(write("zst", &|b| zstd::encode_all(&b[..], 1).expect("zstd"))), reference, "{logs:?}: zstd");
        let crlf = |b: Vec<u8>| String::from_utf8_lossy(&b).replace("\r\n", "\n").replace('\n', "\r\n").into_bytes();
        assert_eq!(findings(write("crlf", &crlf)), reference, "{logs:?}: CRLF");
    }
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"node1:77:78 [0] NCCL INFO ",
        b"node1:77:78 [0] misc/socket.cc:484 NCCL WARN ",
        b"NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80:: remoteGids::ffff:10.0.0.2 hca mlx5_0",
        b"Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM",
        b"ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START",
        b"AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x7f1 [nranks=2] stream 0x3",
        b"[rank3]: ",
        b"(RayWorkerWrapper pid=7, ip=10.0.0.2) ",
        b"{\"log\":\"",
        b"\\n\",\"stream\":\"stderr\"}",
        b"\n",
        b"\r",
        b"\x1b[36m",
        b"\0\0",
        b"\xff\xfe",
        b" ",
    ];
    prop_oneof![3 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec), 1 => proptest::collection::vec(any::<u8>(), 0..12)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_input_panics(parts in proptest::collection::vec(fragment(), 0..60)) {
        let text = parts.concat();
        let analysis = analyze_bytes(&[("a.log", &text), ("b.log", &text[text.len() / 2..])]);
        let mut out = Vec::new();
        ncclog::report::json::write(&analysis, &mut out).expect("memory");
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
    }
}

/// Lines of a few threads that say the same again and again, some unknown. Lines without a header are left out: one may be the rest of an
/// unknown record, which is put together within a block only.
fn chatter() -> impl Strategy<Value = String> {
    let messages = [
        "Using network IB",
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init START",
        "ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xabc - Init COMPLETE",
        "comm 0x7f1 rank 0 nranks 2 cudaDev 0 busId 1a000 - Destroy COMPLETE",
        "AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x7f1 [nranks=2] stream 0x3",
        "AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 5 datatype 7 op 0 root 0 comm 0x7f2 [nranks=2] stream 0x3",
        "NET/IB : No device found.",
        "NCCL_DEBUG set by environment to INFO.",
        "Connected all rings",
        "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
        "threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
        "something that nobody knows",
        "something that nobody knows \r",
    ];
    let prefixes =
        ["node1:10:11 [0] NCCL INFO ", "node1:10:12 [0] NCCL INFO ", "[1,1]<stdout>:node1:20:21 [1] NCCL INFO ", "node1:20:21 [1] NCCL INFO ", "node1:10:11 [0] NCCL WARN "];
    let line = (proptest::sample::select(prefixes.to_vec()), proptest::sample::select(messages.to_vec()));
    proptest::collection::vec(line, 1..160).prop_map(|lines| lines.iter().flat_map(|(prefix, message)| [*prefix, *message, "\n"]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What is read once a block must be what is read line by line: blocks of one line remember nothing.
    #[test]
    fn a_repeated_message_counts_like_every_other(text in chatter(), size in 1usize..3000) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("log");
        std::fs::write(&path, &text).expect("writable");
        let digest = |block_size: usize| {
            let options = Options { inputs: vec![path.display().to_string()], threads: 2, block_size, ..Options::default() };
            format!("{:#?}", ncclog::analysis::digest(&options, &Silent).0)
        };
        let reference = digest(1);
        prop_assert_eq!(digest(size), reference.clone());
        prop_assert_eq!(digest(0), reference);
    }
}
