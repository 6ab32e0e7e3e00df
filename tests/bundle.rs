//! Bundles: they analyse to the findings of the logs, name nobody, and say what is not in them.

mod corpus;

use assert_cmd::Command;
use corpus::{essence, folders, paths};
use ncclog::Analysis;
use ncclog::analysis::{Options, Silent, analyze, read, redact_digest};
use ncclog::bundle::{Bundle, Excerpts, LeftOut, Manifest, SCHEMA};
use ncclog::redact::Redactor;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

fn analysis(inputs: Vec<String>) -> Analysis {
    let outcome = analyze(&Options { inputs, ..Options::default() }, &Silent);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    outcome.analysis
}

#[test]
fn bundles_of_all_fixtures_analyse_to_the_same_findings() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("case.tar.zst");
    let mut wrong = Vec::new();
    for folder in folders() {
        let options = Options { inputs: paths(&folder).iter().map(|p| p.display().to_string()).collect(), ..Options::default() };
        let mut digest = read(&options, &Silent).digest;
        redact_digest(&mut digest, &mut Redactor::default());
        let manifest =
            Manifest { schema: SCHEMA, tool: String::new(), redacted: true, inputs: Vec::new(), problems: Vec::new(), members: Vec::new(), left_out: LeftOut::default() };
        let before = analysis(options.inputs.clone());
        let excerpts = Excerpts::new(&before, &digest, &mut |_| Vec::new());
        let bundle = Bundle { manifest, digest: &digest, json: b"{}".to_vec(), markdown: b"node1:1:1 [0] NCCL WARN not to be read\n".to_vec(), excerpts };
        bundle.write(&mut fs::File::create(&path).expect("file")).expect("bundle");
        let after = analysis(vec![path.display().to_string()]);
        for (a, b) in essence(&before).iter().zip(essence(&after).iter().chain(std::iter::repeat(&String::new()))) {
            if a != b {
                wrong.push(format!("{}:\n   {a}\n   {b}", folder.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

fn ncclog() -> Command {
    Command::cargo_bin("ncclog").expect("binary")
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

fn unpack(path: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(fs::File::open(path).expect("bundle")).expect("zstd"));
    let mut out = BTreeMap::new();
    for entry in archive.entries().expect("tar") {
        let mut entry = entry.expect("member");
        let name = entry.path().expect("name").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("member");
        if name == "job.digest" {
            let start = bytes.iter().position(|b| *b == b'\n').expect("first line") + 1;
            bytes = zstd::decode_all(&bytes[start..]).expect("digest");
        }
        out.insert(name, String::from_utf8(bytes).expect("text"));
    }
    out
}

const LOG: &str = "\
zeta-gpu17:4000:4100 [0] NCCL INFO Bootstrap : Using eth0:10.77.66.55<0>
zeta-gpu17:4000:4100 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /home/zoraida/quux/topo.xml
a quiet line of zoraida on zeta-gpu18.zetacorp.internal with hf_AbCdEfGhIj0123456789
zeta-gpu17:4000:4100 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory errno 12
another line in /home/zoraida/quux/run from 10.77.66.56
nothing
nothing
nothing
nothing
far away
";

fn case(dir: &Path) -> (PathBuf, PathBuf) {
    let log = dir.join("zeta-gpu17.log");
    fs::write(&log, LOG).expect("log");
    (log, dir.join("case.tar.zst"))
}

#[test]
fn a_bundle_holds_report_digest_and_lines_and_names_nobody() {
    let dir = tempfile::tempdir().expect("directory");
    let (log, bundle) = case(dir.path());
    let said = stderr(&ncclog().arg("bundle").arg(&log).arg("-o").arg(&bundle).assert().code(0).stdout(""));
    assert!(said.contains("the bundle is redacted"), "{said}");
    let members = unpack(&bundle);
    assert_eq!(members.keys().map(String::as_str).collect::<Vec<_>>(), ["analysis.json", "excerpts/host-01.log.md", "job.digest", "manifest.json", "report.md"]);
    for (name, text) in &members {
        for trace in ["zeta", "zoraida", "quux", "77.66", "AbCdEf"] {
            assert!(!text.contains(trace), "{name}: {trace} in {text}");
        }
    }
    let excerpt = &members["excerpts/host-01.log.md"];
    assert!(excerpt.contains(" 4  host-01:4000:4100 [0] NCCL WARN Call to ibv_reg_mr failed"), "{excerpt}");
    assert!(excerpt.contains(" 3  a quiet line of user-1 on host-02.domain-1 with hf_redacted-") && !excerpt.contains(" 9  "), "{excerpt}");
    let manifest: serde_json::Value = serde_json::from_str(&members["manifest.json"]).expect("JSON");
    assert_eq!(manifest["schema"], SCHEMA);
    assert_eq!(manifest["redacted"], true);
    assert_eq!(manifest["inputs"][0]["bytes"], LOG.len());
    assert_eq!(manifest["inputs"][0]["xxh3"].as_str().map(str::len), Some(32));
    assert_eq!(manifest["members"].as_array().map(Vec::len), Some(4));
    assert!(manifest["left_out"]["lines"].as_u64().is_some_and(|n| (1..10).contains(&n)), "{manifest}");
    let found = |path: &Path| {
        let out = ncclog().arg(path).args(["--format", "json"]).assert().code(1);
        let report: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).expect("JSON");
        let lines = report["findings"].as_array().expect("findings").iter().map(|f| format!("{} {} {}", f["id"], f["confidence"], f["evidence"][0]["line"]));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(found(&bundle), found(&log));
}

#[test]
fn odd_calls_are_told() {
    let dir = tempfile::tempdir().expect("directory");
    let (log, bundle) = case(dir.path());
    let call = |extra: &[&str]| {
        let mut command = ncclog();
        command.arg("bundle").arg(&log).args(extra).arg("-o").arg(&bundle);
        command
    };
    call(&[]).assert().code(0);
    let first = fs::read(&bundle).expect("bundle");
    let said = stderr(&call(&[]).assert().code(2));
    assert!(said.contains("is there already") && said.contains("--force"), "{said}");
    call(&["--force"]).assert().code(0);
    assert_eq!(fs::read(&bundle).expect("bundle"), first, "the same logs give the same bundle");
    call(&["--force", "--no-redact"]).assert().code(0).stderr("");
    let members = unpack(&bundle);
    assert!(members["excerpts/zeta-gpu17.log.md"].contains("3  a quiet line of zoraida") && members["manifest.json"].contains("\"redacted\": false"));

    let said = stderr(&call(&["--force", "/nonexistent/x.log"]).assert().code(2));
    assert!(said.contains("/nonexistent/x.log"), "{said}");
    assert!(unpack(&bundle)["manifest.json"].contains("x.log"), "the bundle says what is missing");
    let said = stderr(&ncclog().args(["bundle", "/nonexistent/x.log", "-o"]).arg(dir.path().join("none.tar.zst")).assert().code(2));
    assert!(said.contains("no bundle was written") && !dir.path().join("none.tar.zst").exists(), "{said}");

    let empty = dir.path().join("empty.log");
    fs::write(&empty, "").expect("file");
    let of_empty = dir.path().join("empty.tar.zst");
    ncclog().arg("bundle").arg(&empty).arg("-o").arg(&of_empty).assert().code(0);
    ncclog().arg(&of_empty).assert().code(0);

    let out = ncclog().args(["bundle", "-", "-o", "-"]).write_stdin(LOG).assert().code(0);
    let piped = dir.path().join("piped.tar.zst");
    fs::write(&piped, &out.get_output().stdout).expect("bundle");
    assert!(unpack(&piped)["excerpts/input.md"].contains("NCCL WARN Call to ibv_reg_mr"));
}

#[test]
fn a_damaged_bundle_is_told_and_not_believed() {
    let dir = tempfile::tempdir().expect("directory");
    let (log, bundle) = case(dir.path());
    ncclog().arg("bundle").arg(&log).arg("-o").arg(&bundle).assert().code(0);
    let bytes = fs::read(&bundle).expect("bundle");
    for cut in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 9] {
        fs::write(&bundle, &bytes[..cut]).expect("file");
        let said = stderr(&ncclog().arg(&bundle).assert().code(2));
        assert!(said.contains("case.tar.zst"), "{said}");
    }
    for at in (40..bytes.len()).step_by(bytes.len() / 12) {
        let mut hurt = bytes.clone();
        hurt[at] ^= 0x55;
        fs::write(&bundle, &hurt).expect("file");
        // Whatever it says, it says it in order.
        let code = ncclog().arg(&bundle).assert().get_output().status.code();
        assert!(matches!(code, Some(0..=2)), "{at}: {code:?}");
    }
}
