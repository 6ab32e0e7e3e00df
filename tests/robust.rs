//! Input that no log should be, and logs as other programs wrap them.

mod corpus;

use ncclog::analysis::{Options, Silent, analyze, analyze_bytes};

/// A name and what stands under it.
type Named<T> = (String, T);

/// The logs of each fixture.
fn fixtures() -> Vec<Named<Vec<Named<Vec<u8>>>>> {
    corpus::folders().iter().map(|f| (corpus::name(f), corpus::logs(f))).collect()
}

/// What was found, without places.
fn findings(logs: &[(String, Vec<u8>)]) -> Vec<(String, String, Vec<u32>)> {
    let logs: Vec<(&str, &[u8])> = logs.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
    analyze_bytes(&logs).findings.iter().map(|f| (f.id.to_owned(), format!("{:?} {:?}", f.severity, f.confidence), f.ranks.clone())).collect()
}

#[test]
fn every_cut_of_a_log_is_survived() {
    let mut whole = 0;
    for (_, logs) in fixtures() {
        for (name, text) in logs {
            // Every byte of the short ones, and of the others the places around some line ends.
            let every = text.len() < 1200 && whole < 5;
            whole += usize::from(every);
            let ends: Vec<usize> = memchr::memchr_iter(b'\n', &text).step_by(1 + text.len() / 4000).take(6).collect();
            let cuts: Vec<usize> = if every { (0..text.len()).collect() } else { ends.iter().flat_map(|at| [at.saturating_sub(1), *at, at + 1, at + 17]).collect() };
            for cut in cuts {
                analyze_bytes(&[(&name, &text[..cut.min(text.len())])]);
            }
        }
    }
    assert!(whole > 3, "no short fixture is left");
}

type Wrapper = (&'static str, fn(&str) -> String);

/// Wrappers that add nothing of their own to what a log says.
const WRAPPERS: [Wrapper; 5] = [
    ("docker json", |line| format!("{{\"log\":{},\"stream\":\"stderr\"}}", serde_json::to_string(&format!("{line}\n")).expect("a string"))),
    ("colour", |line| format!("\u{1b}[36m{line}\u{1b}[0m")),
    ("quoted", |line| format!("> {line}")),
    ("carriage return", |line| format!("{line}\r")),
    ("compose", |line| format!("trainer-1  | {line}")),
];

#[test]
fn a_wrapper_changes_no_finding() {
    let mut compared = 0;
    for (folder, logs) in fixtures() {
        compared += 1;
        let reference = findings(&logs);
        for (wrapper, wrap) in WRAPPERS {
            let wrapped = |(name, text): &(String, Vec<u8>)| (name.clone(), String::from_utf8_lossy(text).lines().map(|l| wrap(l) + "\n").collect::<String>().into_bytes());
            assert_eq!(findings(&logs.iter().map(wrapped).collect::<Vec<_>>()), reference, "{folder}: {wrapper}");
        }
    }
    assert!(compared > 90, "only {compared} fixtures");
}

#[test]
fn ranks_that_share_a_file_line_by_line_say_what_they_say_apart() {
    let mut compared = 0;
    for (folder, logs) in fixtures() {
        let headed = |text: &[u8]| String::from_utf8_lossy(text).lines().all(|l| l.contains(" NCCL ") || l.is_empty());
        if logs.len() < 2 || !logs.iter().all(|(_, text)| headed(text)) {
            continue;
        }
        compared += 1;
        let texts: Vec<String> = logs.iter().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect();
        let mut sources: Vec<_> = texts.iter().map(|t| t.lines()).collect();
        let mut mixed = String::new();
        while sources.iter_mut().filter_map(|lines| lines.next().map(|l| mixed.push_str(&format!("{l}\n")))).count() > 0 {}
        // Ranks that only the files' names told of are lost.
        let told = |logs: &[(String, Vec<u8>)]| findings(logs).into_iter().map(|(id, grade, _)| (id, grade)).collect::<Vec<_>>();
        assert_eq!(told(&[("all.log".to_owned(), mixed.into_bytes())]), told(&logs), "{folder}");
    }
    assert!(compared > 10, "only {compared} fixtures");
}

#[test]
fn floods_are_bounded() {
    let head = b"node1:10:11 [0] NCCL INFO ";
    for piece in [&b"\0"[..], b"\n", b"\r", b"\x1b[31m", b"\xe4\xb8", b"[", b"{\"log\":\"", b"\\n", head, b"x"] {
        let flood: Vec<u8> = piece.iter().copied().cycle().take(3_000_000).collect();
        analyze_bytes(&[("flood", &flood)]);
        let behind = [&head[..], &flood[..100_000], b"\nnode1:10:11 [0] NCCL INFO Using network IB\n"].concat();
        let found = analyze_bytes(&[("behind", &behind)]);
        assert_eq!(found.job.nets, ["IB"], "lost behind {piece:?}");
    }
}

#[test]
fn a_broken_archive_is_read_as_far_as_it_goes_and_fails() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, logs) = fixtures().into_iter().find(|(name, _)| name == "roce-gid-link-local-against-ipv4").expect("the fixture");
    let packed = zstd::encode_all(&logs[0].1[..], 1).expect("zstd");
    let path = dir.path().join("rank0.log.zst");
    std::fs::write(&path, &packed[..packed.len() - 20]).expect("writable");
    let done = assert_cmd::Command::cargo_bin("ncclog").expect("built").arg(&path).assert().code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("rank0.log.zst"), "{said}");
    let outcome = analyze(&Options { inputs: vec![path.display().to_string()], ..Options::default() }, &Silent);
    assert_eq!(outcome.problems.len(), 1);
}

#[test]
fn events_tells_of_every_line_that_is_said_again() {
    let line = "node1:10:11 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 2 / HCA 2 (distance 4 <= 5), read 0 mode Default\n";
    let done = assert_cmd::Command::cargo_bin("ncclog").expect("built").args(["events", "-"]).write_stdin(line.repeat(5)).assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert_eq!(out.lines().count(), 5, "{out}");
}

fn ncclog(args: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::cargo_bin("ncclog").expect("built");
    command.args(args);
    command
}

#[test]
fn a_gate_is_not_passed_by_a_job_that_ends() {
    let start = "node1:10:11 [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n";
    ncclog(&["follow", "--until", "ready", "-"]).write_stdin(start).assert().code(3);
    ncclog(&["follow", "-"]).write_stdin(start).assert().code(0);
    ncclog(&["expect", "--from"]).arg("/dev/null").assert().code(2);
}

#[test]
fn a_copy_of_a_cut_file_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = (0..100_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect::<Vec<_>>().join("\n");
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("zstd");
    let path = dir.path().join("rank0.log.zst");
    std::fs::write(&path, &packed[..packed.len() / 2]).expect("writable");
    let (path, out) = (path.display().to_string(), dir.path().join("out").display().to_string());
    let done = ncclog(&["redact", &path, "-o", &out]).assert().code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("rank0.log.zst: could be read only up to byte"), "{said}");
}

#[test]
fn a_pipe_without_a_writer_does_not_hold_follow_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    ncclog(&["follow", "-q", "--timeout", "1s"]).arg(&path).timeout(std::time::Duration::from_secs(20)).assert().code(0);
}

#[test]
fn what_cannot_be_searched_or_read_is_told() {
    let packed = zstd::encode_all(&vec![b'x'; 100_000][..], 1).expect("zstd");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("rank0.log.zst");
    std::fs::write(&path, packed).expect("writable");
    let done = ncclog(&["--max-bytes", "1K"]).arg(&path).assert().code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("raise it for the rest") && !said.contains("fetch"), "{said}");
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o0)).expect("allowed");
    // The superuser may search everything.
    if std::fs::read_dir(&closed).is_err() {
        let done = ncclog(&[]).arg(dir.path()).assert().code(2);
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.contains("closed: cannot be searched"), "{said}");
    }
}
