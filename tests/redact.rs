//! Redaction: nothing that was planted survives, in no wrapper and no format; and the findings stay the same.

mod corpus;

use assert_cmd::Command;
use corpus::{essence, folders, logs};
use ncclog::Analysis;
use ncclog::analysis::redact_analysis;
use ncclog::redact::{Found, Redactor, Scanner};
use ncclog::report::{self, Format};
use std::fs;

const FORMATS: [Format; 7] = [Format::Text, Format::Json, Format::Markdown, Format::Html, Format::Github, Format::Sarif, Format::Junit];

/// What must not be seen in any output, in no spelling.
const TRACES: [&str; 24] = [
    "zeta",
    "zoraida",
    "quux",
    "77.66",
    "77:66",
    "776655",
    "7766:55",
    "b859",
    "4d3742",
    "2a02",
    "hunter",
    "AbCdEf",
    "qWeRtY",
    "BCDEFGHIJ",
    "s3cr3t",
    "MIIEvQ",
    "5f2a1b3c",
    "SflKxw",
    "dXNlcjpw",
    "4711abcd",
    "wJalrX",
    "xOxOxO",
    "ghpghp",
    "nvnvnv",
];

/// Lines with secrets of every kind, among them failures that reports quote.
fn planted() -> Vec<String> {
    let head = |rank: u32| format!("zeta-gpu17:{}:{} [{rank}] NCCL", 4000 + rank, 4100 + rank);
    vec![
        format!("{} INFO Bootstrap : Using eth0:10.77.66.55<0>", head(0)),
        "zeta-gpu17:4000:4100 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0".into(),
        format!("{} INFO NCCL_HOSTID set by environment to zeta-gpu17", head(0)),
        format!("{} INFO NCCL_TOPO_FILE set by environment to /home/zoraida/quux/topo.xml", head(0)),
        format!("{} INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.77.66.55<0>", head(0)),
        format!(
            "{} WARN NET/IB : Got completion from peer 10.77.66.55<4711> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid ::ffff:10.77.66.55 remoteGids fe80::b859:9f03:d4:77aa hca mlx5_0",
            head(0)
        ),
        format!("{} WARN Call to connect returned Connection refused to zeta-gpu18.cl.zetacorp.internal (192.168.77.66)", head(1)),
        format!("{} WARN Could not open /home/zoraida/quux/plugin of zoraida at 2a02:77:66::55", head(1)),
        "GID 3 (0/37424D0AFFFF0000) mac 0c:42:a1:77:66:55 node_guid: 0x0c42a10300776655 GPU-5f2a1b3c-1234-5678-9abc-def012345678".into(),
        "HF_TOKEN=hf_AbCdEfGhIj0123456789 NGC nvapi-nvnvnv0123456789 openai sk-qWeRtY0123456789abcdef".into(),
        "AWS_ACCESS_KEY_ID=AKIABCDEFGHIJKLMNO12 AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        "github ghp_ghpghp0123456789abcdef slack xoxb-4711abcd-xOxOxO Authorization: Bearer s3cr3t-4711abcd".into(),
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c".into(),
        "url https://zoraida:hunter22@git.zetacorp.internal/quux.git Basic dXNlcjpwYXNzd29yZA==".into(),
        "DB_PASSWORD=hunter22 password: hunter22 --api-key hunter22".into(),
        "-----BEGIN RSA PRIVATE KEY-----".into(),
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj".into(),
        "MIIEvQ==".into(),
        "-----END RSA PRIVATE KEY-----".into(),
        "Traceback (most recent call last):".into(),
        "  File \"/home/zoraida/quux/train.py\", line 3, in <module>".into(),
        "RuntimeError: zeta-gpu17 of zoraida cannot read /scratch/quux/data with hf_AbCdEfGhIj0123456789".into(),
        "srun: error: zeta-gpu18: task 3: Exited with exit code 1".into(),
        "slurmstepd: error: *** STEP 77.0 ON zeta-gpu17 CANCELLED AT 2026-05-05T06:00:00 ***".into(),
        "USER=zoraida uid=1000(zoraida) zoraida@zeta-gpu17:/lustre/quux$ ls".into(),
        "[W socket.cpp:697] [c10d] The client socket has failed to connect to [zeta-gpu18.cl.zetacorp.internal]:29500 (errno: 111 - Connection refused).".into(),
    ]
}

/// Every wrapper around the lines.
fn wrapped(lines: &[String]) -> Vec<(&'static str, String)> {
    let each = |f: &dyn Fn(&str) -> String| lines.iter().map(|l| f(l) + "\n").collect::<String>();
    let json = |l: &str| serde_json::to_string(l).expect("text");
    vec![
        ("plain", each(&|l| l.to_owned())),
        ("docker", each(&|l| format!("{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-05-05T06:00:00.0Z\"}}", json(&format!("{l}\n"))))),
        ("kubectl", each(&|l| format!("[pod/zeta-job-worker-1/pytorch] {l}"))),
        ("ray", each(&|l| format!("\u{1b}[36m(RayWorkerWrapper pid=2981, ip=10.77.66.55)\u{1b}[0m {l}"))),
        ("torchrun", each(&|l| format!("[rank0]:{l}"))),
        ("srun", each(&|l| format!("0: {l}"))),
        ("mpirun", each(&|l| format!("[1,0]<stdout>:{l}"))),
        ("journald", each(&|l| format!("May 05 06:00:00 zeta-gpu17 trainer[77]: {l}"))),
        ("journald json", each(&|l| format!("{{\"MESSAGE\":{},\"_HOSTNAME\":\"zeta-gpu17\",\"_PID\":\"77\"}}", json(l)))),
        ("json twice", each(&|l| format!("{{\"message\":{}}}", json(&json(&format!("{l}\n")))))),
        ("compose", each(&|l| format!("zeta-trainer-1  | {l}"))),
        ("one line", format!("{{\"message\":{}}}\n", json(&lines.join("\n")))),
    ]
}

fn assert_clean(what: &str, text: &str) {
    for trace in TRACES {
        let at = text.to_ascii_lowercase().find(&trace.to_ascii_lowercase());
        let around = at.map(|a| text.chars().skip(text[..a].chars().count().saturating_sub(80)).take(160).collect::<String>());
        assert_eq!(around, None, "{what}: {trace} is seen");
    }
}

fn redacted(redactor: &Redactor, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    redactor.redact(text, false, &mut Scanner::default(), &mut out);
    out
}

#[test]
fn nothing_planted_survives_in_raw_logs() {
    for (wrapper, text) in wrapped(&planted()) {
        let mut redactor = Redactor::default();
        redactor.learn(text.as_bytes());
        let out = redacted(&redactor, text.as_bytes());
        assert_clean(wrapper, &String::from_utf8(out).expect("text"));
    }
}

#[test]
fn nothing_planted_survives_in_reports() {
    for (wrapper, text) in wrapped(&planted()) {
        let mut analysis = Analysis::from_bytes(&[("/home/zoraida/quux/zeta-gpu17.log", text.as_bytes())]);
        redact_analysis(&mut analysis, &mut Redactor::default());
        for format in FORMATS {
            let mut out = Vec::new();
            let options = report::Options { tree: true, ..report::Options::default() };
            report::write(format, &analysis, &mut out, &options).expect("memory");
            assert_clean(&format!("{wrapper} {format:?}"), &String::from_utf8(out).expect("text"));
        }
    }
}

fn analyse(logs: &[(String, Vec<u8>)]) -> Analysis {
    Analysis::from_bytes(&logs.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect::<Vec<_>>())
}

/// The hosts of an analysis that can be looked for in a text.
fn hosts(analysis: &Analysis) -> Vec<String> {
    let names = analysis.job.procs.iter().map(|p| p.host.clone()).chain(analysis.job.procs.iter().flat_map(|p| p.log.wrap_hosts.clone()));
    // `busy` is also a word of our own.
    names.filter(|h| h.len() > 2 && h != "busy" && !h.starts_with("rank") && !h.starts_with("host-")).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.match_indices(word).any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + word.len()..].chars().next()))
}

#[test]
fn redacted_fixtures_analyse_to_the_same_findings() {
    let mut wrong = Vec::new();
    for folder in folders() {
        let logs = logs(&folder);
        let mut redactor = Redactor::default();
        redactor.join(logs.iter().map(|(_, text)| {
            let mut found = Found::default();
            found.read(text, &Redactor::default());
            found
        }));
        let copies: Vec<(String, Vec<u8>)> = logs.iter().map(|(name, text)| (redactor.path(name), redacted(&redactor, text))).collect();
        let (before, after) = (analyse(&logs), analyse(&copies));
        let name = folder.file_name().expect("folder").to_string_lossy().into_owned();
        for (a, b) in essence(&before).iter().zip(essence(&after).iter().chain(std::iter::repeat(&String::new()))) {
            if a != b {
                wrong.push(format!("{name}:\n   {a}\n   {b}"));
            }
        }
        for host in hosts(&before) {
            for (file, text) in &copies {
                if has_word(&String::from_utf8_lossy(text), &host) {
                    wrong.push(format!("{name}/{file}: {host} is seen"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn redacted_reports_name_no_host_and_keep_their_findings() {
    let mut wrong = Vec::new();
    for folder in folders() {
        let before = analyse(&logs(&folder));
        let mut after = analyse(&logs(&folder));
        redact_analysis(&mut after, &mut Redactor::default());
        let name = folder.file_name().expect("folder").to_string_lossy().into_owned();
        if essence(&before) != essence(&after) {
            wrong.push(format!("{name}: {:?} became {:?}", essence(&before), essence(&after)));
        }
        for format in FORMATS {
            let mut out = Vec::new();
            report::write(format, &after, &mut out, &report::Options::default()).expect("memory");
            let text = String::from_utf8(out).expect("text");
            wrong.extend(hosts(&before).iter().filter(|h| has_word(&text, h)).map(|h| format!("{name} {format:?}: {h} is seen")));
        }
        // Advice is ours and must not be mistaken for a log's.
        for (a, b) in before.findings.iter().zip(&after.findings) {
            for (x, y) in a.avoid.iter().chain(a.fixes.iter().flat_map(|f| [&f.needs, &f.cost])).zip(b.avoid.iter().chain(b.fixes.iter().flat_map(|f| [&f.needs, &f.cost]))) {
                if x != y {
                    wrong.push(format!("{name}: {x:?} became {y:?}"));
                }
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

fn ncclog() -> Command {
    Command::cargo_bin("ncclog").expect("binary")
}

fn utf16(text: &str) -> Vec<u8> {
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn files_are_copied_under_their_names_with_one_map() {
    let dir = tempfile::tempdir().expect("directory");
    let text = planted().join("\n") + "\n";
    fs::write(dir.path().join("zeta-gpu17.rank0.log"), &text).expect("file");
    fs::write(dir.path().join("rank1.log"), utf16("no header here: zeta-gpu17 is gone\n")).expect("file");
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("zstd");
    fs::write(dir.path().join("rank2.log.zst"), packed).expect("file");
    let (out, map) = (dir.path().join("out"), dir.path().join("map.json"));
    let call = || {
        let mut command = ncclog();
        command.arg("redact").args(["zeta-gpu17.rank0.log", "rank1.log", "rank2.log.zst"].map(|n| dir.path().join(n))).arg("-o").arg(&out).arg("--redact-map").arg(&map);
        command
    };
    let said = stderr(&call().assert().code(0).stdout(""));
    assert!(said.contains("3 files redacted into") && said.contains("map.json undoes it"), "{said}");
    let mut names: Vec<String> = fs::read_dir(&out).expect("out").map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["host-02.rank0.log", "rank1.log", "rank2.log"]);
    for name in &names {
        assert_clean(name, &fs::read_to_string(out.join(name)).expect("text"));
    }
    assert_eq!(fs::read_to_string(out.join("rank1.log")).expect("text"), "no header here: host-02 is gone\n");
    assert_eq!(fs::read(out.join("rank2.log")).expect("copy"), fs::read(out.join("host-02.rank0.log")).expect("copy"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&map).expect("map").permissions().mode() & 0o777, 0o600);
    }
    // Nothing is replaced unasked; the map gives a later run the same names.
    let said = stderr(&call().assert().code(2));
    assert!(said.contains("is there already") && said.contains("--force"), "{said}");
    call().arg("--force").assert().code(0);
    let piped = ncclog().args(["redact", "-", "--redact-map"]).arg(&map).write_stdin("zeta-gpu18 and then zeta-gpu17:1:1 [0] NCCL INFO x").assert().code(0);
    assert_eq!(String::from_utf8_lossy(&piped.get_output().stdout), "host-03 and then host-02:1:1 [0] NCCL INFO x");
}

#[test]
fn odd_calls_are_told() {
    let dir = tempfile::tempdir().expect("directory");
    let log = dir.path().join("a.log");
    fs::write(&log, "").expect("file");
    let out = dir.path().join("out");
    ncclog().arg("redact").arg(&log).arg("-o").arg(&out).assert().code(0);
    assert_eq!(fs::read(out.join("a.log")).expect("copy"), b"");
    let said = stderr(&ncclog().arg("redact").arg(&log).assert().code(2));
    assert!(said.contains("-o DIR"), "{said}");
    let said = stderr(&ncclog().arg("redact").arg(&log).arg(dir.path().join("missing.log")).arg("-o").arg(dir.path().join("b")).assert().code(2));
    assert!(said.contains("missing.log") && said.contains("1 file redacted"), "{said}");
    let said = stderr(&ncclog().arg("redact").arg(&log).arg("-o").arg(&log).assert().code(2));
    assert!(said.contains("is no directory"), "{said}");
    let said = stderr(&ncclog().arg("redact").arg(&log).arg("-o").arg(dir.path()).arg("--force").assert().code(2));
    assert!(said.contains("would be overwritten"), "{said}");
    fs::write(dir.path().join("map.json"), "{\"hosts\":3}").expect("file");
    let said = stderr(&ncclog().args(["redact", "-"]).arg("--redact-map").arg(dir.path().join("map.json")).write_stdin("x").assert().code(2));
    assert!(said.contains("cannot be used as map"), "{said}");
    fs::write(dir.path().join("b.bin"), b"a\0b").expect("file");
    let said = stderr(&ncclog().arg("redact").arg(dir.path().join("b.bin")).arg("-o").arg(&out).assert().code(2));
    assert!(said.contains("is no text"), "{said}");
}

#[test]
fn forms_are_redacted_unless_told_otherwise() {
    let dir = tempfile::tempdir().expect("directory");
    let log = dir.path().join("rank0.log");
    fs::write(&log, planted().join("\n")).expect("file");
    let form = |extra: &[&str]| ncclog().arg(&log).args(["--for", "nccl-issue", "--fail-on", "never"]).args(extra).assert().code(0);
    let out = form(&[]);
    assert_clean("form", &String::from_utf8_lossy(&out.get_output().stdout));
    assert!(stderr(&out).contains("the report is redacted"), "{}", stderr(&out));
    let out = form(&["--no-redact"]);
    assert!(String::from_utf8_lossy(&out.get_output().stdout).contains("zeta-gpu17") && stderr(&out).is_empty());
    let page = ncclog().arg(&log).args(["--format", "html", "--redact", "--fail-on", "never"]).assert().code(0);
    let page = String::from_utf8_lossy(&page.get_output().stdout).into_owned();
    assert_clean("html", &page);
    assert!(page.contains("class=\"dim\""), "lines around the evidence are shown");
}
