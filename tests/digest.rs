//! Digests: what is said of them is what is said of the logs, however they were cut, packed, merged and mixed; and a
//! file from an untrusted host does no harm.

use assert_cmd::Command;
use ncclog::analysis::{Options, Silent, analyze, merge, read};
use ncclog::digest::disk;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn dir() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn ncclog(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("ncclog").expect("the binary").args(args).assert()
}

fn fixtures() -> Vec<Vec<String>> {
    let mut folders: Vec<PathBuf> = fs::read_dir("fixtures").expect("fixtures").filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    let logs = |folder: &PathBuf| {
        let files = fs::read_dir(folder).expect("folder").filter_map(Result::ok).map(|e| e.path());
        let mut list: Vec<String> = files.filter(|p| p.extension().is_some_and(|e| e != "json")).map(|p| p.display().to_string()).collect();
        list.sort();
        list
    };
    folders.iter().map(logs).filter(|l| !l.is_empty()).collect()
}

fn options(inputs: &[String]) -> Options {
    Options { inputs: inputs.to_vec(), ..Options::default() }
}

/// The JSON report. What only the files themselves can tell is taken out: the quoted line of a call.
fn report(inputs: &[String]) -> Value {
    let outcome = analyze(&options(inputs), &Silent);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let mut out = Vec::new();
    ncclog::report::json::write(&outcome.analysis, &mut out).expect("memory");
    let mut json: Value = serde_json::from_slice(&out).expect("JSON");
    for finding in json["findings"].as_array_mut().expect("a list").iter_mut().filter(|f| f["id"] == "collective-mismatch") {
        finding["evidence"].as_array_mut().expect("a list").iter_mut().for_each(|e| e["text"] = Value::Null);
    }
    json
}

fn digest_of(inputs: &[String], target: &Path) -> String {
    let reading = read(&options(inputs), &Silent);
    assert!(reading.problems.is_empty(), "{:?}", reading.problems);
    let mut bytes = Vec::new();
    disk::write(&reading.digest, &mut bytes).expect("memory");
    fs::write(target, bytes).expect("writable");
    target.display().to_string()
}

fn merged(inputs: &[String], target: &Path) -> String {
    let reading = merge(inputs);
    assert!(reading.problems.is_empty() && reading.notes.is_empty(), "{:?} {:?}", reading.problems, reading.notes);
    let mut bytes = Vec::new();
    disk::write(&reading.digest, &mut bytes).expect("memory");
    fs::write(target, bytes).expect("writable");
    target.display().to_string()
}

#[test]
fn digests_say_what_the_logs_say() {
    let dir = dir();
    for logs in fixtures() {
        let wanted = report(&logs);
        let path = |name: &str| dir.path().join(name);
        let each: Vec<String> = logs.iter().enumerate().map(|(i, l)| digest_of(std::slice::from_ref(l), &path(&format!("n{i}.digest")))).collect();
        assert_eq!(report(&each), wanted, "{logs:?}: a digest a file");
        let whole = digest_of(&logs, &path("whole.digest"));
        assert_eq!(report(std::slice::from_ref(&whole)), wanted, "{logs:?}: one digest");
        let again = digest_of(std::slice::from_ref(&whole), &path("again.digest"));
        assert_eq!(report(&[again]), wanted, "{logs:?}: a digest of a digest");
        if logs.len() < 2 {
            continue;
        }
        // The last first, then the others one by one.
        let mut all = each[each.len() - 1].clone();
        for (i, one) in each[..each.len() - 1].iter().enumerate() {
            all = merged(&[all, one.clone()], &path(&format!("m{i}.digest")));
        }
        assert_eq!(report(std::slice::from_ref(&all)), wanted, "{logs:?}: merged in stages");
        let mixed: Vec<String> = logs.iter().zip(&each).enumerate().map(|(i, (log, digest))| if i % 2 == 0 { log.clone() } else { digest.clone() }).collect();
        assert_eq!(report(&mixed), wanted, "{logs:?}: logs and digests");
    }
}

/// One log a rank, each with its own file name.
fn several() -> Vec<String> {
    let logs = fixtures().into_iter().max_by_key(Vec::len).expect("a fixture");
    assert!(logs.len() >= 3, "a fixture with several files");
    logs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_order_and_any_stages_give_the_same_digest(picks in proptest::collection::vec(any::<usize>(), 12), which in 0usize..40) {
        let dir = dir();
        let all: Vec<Vec<String>> = fixtures().into_iter().filter(|l| l.len() > 1).collect();
        let logs = &all[which % all.len()];
        let mut open: Vec<String> = logs.iter().enumerate().map(|(i, l)| digest_of(std::slice::from_ref(l), &dir.path().join(format!("n{i}.digest")))).collect();
        let reference = fs::read(merged(&open, &dir.path().join("all.digest"))).expect("readable");
        let mut turn = picks.iter().cycle();
        let mut pick = |n: usize| turn.next().map_or(0, |p| p % n);
        let mut stage = 0;
        while open.len() > 1 {
            let mut some = vec![open.swap_remove(pick(open.len()))];
            for _ in 0..=pick(2) {
                if !open.is_empty() {
                    some.push(open.swap_remove(pick(open.len())));
                }
            }
            stage += 1;
            open.push(merged(&some, &dir.path().join(format!("s{stage}.digest"))));
        }
        prop_assert_eq!(fs::read(&open[0]).expect("readable"), reference);
    }
}

/// The lines behind the version, decoded.
fn lines(digest: &str) -> Vec<String> {
    let bytes = fs::read(digest).expect("readable");
    let body = &bytes[bytes.iter().position(|b| *b == b'\n').expect("a first line") + 1..];
    String::from_utf8(zstd::decode_all(body).expect("zstd")).expect("JSON").lines().map(str::to_owned).collect()
}

fn packed(lines: &[String]) -> Vec<u8> {
    let text: String = lines.iter().flat_map(|l| [l.as_str(), "\n"]).collect();
    [format!("{}\n", disk::SCHEMA).into_bytes(), zstd::encode_all(text.as_bytes(), 3).expect("zstd")].concat()
}

/// What a reader says of these bytes.
fn fails(bytes: &[u8]) -> String {
    match disk::read(&mut &bytes[..], "x.digest") {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_damaged_digest_is_refused_whole() {
    let dir = dir();
    let path = digest_of(&several(), &dir.path().join("a.digest"));
    let bytes = fs::read(&path).expect("readable");
    for cut in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let said = fails(&bytes[..cut]);
        assert!(said.contains("is a damaged digest") || said.contains("is no digest"), "cut at {cut}: {said}");
    }
    for at in (16..bytes.len()).step_by(53) {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        assert!(fails(&other).contains("damaged"), "byte {at}");
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(b"more");
    assert!(fails(&longer).contains("damaged"));
    assert_eq!(fails(&bytes), "nothing");
    assert!(fails(b"").contains("is no digest") && fails(b"NCCL version 2.27.3\n").contains("is no digest"));
    let newer = [b"ncclog.digest/7\n", &bytes[16..]].concat();
    assert!(fails(&newer).contains("newer ncclog (digest format 7"), "{}", fails(&newer));
    for odd in [&b"ncclog.digest/\n"[..], b"ncclog.digest/1", b"ncclog.digest/99999999999999999999999\n", b"ncclog.digest/-1\n"] {
        assert!(fails(odd).contains("damaged"));
    }
}

#[test]
fn a_digest_that_swells_is_refused_early() {
    let head = r#"{"tool":"x","streams":0,"processes":900000,"patterns":[]}"#.to_owned();
    let line = format!("{{\"stream\":0,\"label\":\"{}\"}}", "a".repeat(900_000));
    let mut text = format!("{head}\n");
    for _ in 0..200 {
        text.push_str(&line);
        text.push('\n');
    }
    let bomb = [format!("{}\n", disk::SCHEMA).into_bytes(), zstd::encode_all(text.as_bytes(), 3).expect("zstd")].concat();
    assert!(bomb.len() < 200_000);
    let said = fails(&bomb);
    assert!(said.contains("more than a digest may") || said.contains("belongs to no stream"), "{said}");
    let wide = packed(&[head.replace("900000", "1"), "x".repeat(3 << 20)]);
    assert!(fails(&wide).contains("more than a digest may"));
    assert!(fails(&packed(&[head.replace("\"streams\":0", "\"streams\":99999999")])).contains("more than a digest may"));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let dir = dir();
    let logs = fixtures().into_iter().find(|l| l[0].contains("collective-mismatch-count")).expect("the fixture");
    let good = lines(&digest_of(&logs, &dir.path().join("a.digest")));
    let at = good.iter().position(|l| l.contains("\"checkpoints\":[[")).expect("calls");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut process: Value = serde_json::from_str(&good[at]).expect("JSON");
        change(&mut process);
        let mut lines = good.clone();
        lines[at] = process.to_string();
        fails(&packed(&lines))
    };
    assert_eq!(with(&|_| ()), "nothing");
    for (what, change) in [
        ("a record is missing", &(|p: &mut Value| p["first"] = 99_999.into()) as &dyn Fn(&mut Value)),
        ("a record is missing", &|p| p["ledger"][0][5] = 99_999.into()),
        ("a fact has no records", &|p| p["ledger"][0][6] = Value::Array(Vec::new())),
        ("belongs to no stream", &|p| p["stream"] = 77.into()),
        ("out of range", &|p| p["records"] = u64::MAX.into()),
        ("out of range", &|p| p["samples"][0][0] = u64::MAX.into()),
        ("a text is too long", &|p| p["samples"][0][3] = "x".repeat(5000).into()),
        ("a text is too long", &|p| p["host"] = "x".repeat(5000).into()),
        ("too many settings", &|p| p["settings"] = serde_json::json!(vec![("NCCL_X", "1", true, 0); 201])),
        ("too many communicators", &|p| p["comms"] = Value::Array(vec![p["comms"][0].clone(); 129])),
        ("contradict", &|p| p["comms"][0]["calls"]["stride"] = 3.into()),
        ("contradict", &|p| p["comms"][0]["calls"]["len"] = 1_000_000_000.into()),
        ("contradict", &|p| p["comms"][0]["calls"]["len"] = 0.into()),
        ("contradict", &|p| p["comms"][0]["calls"]["tail"][0][0] = 4000.into()),
        ("contradict", &|p| p["comms"][0]["calls"]["tail"][0][1] = (-900_000).into()),
        ("invalid type", &|p| p["comms"] = "x".into()),
    ] {
        let said = with(change);
        assert!(said.contains(what), "{what}: {said}");
    }
    // What a later version adds is passed over, and what it leaves out has its default.
    assert_eq!(with(&|p| p["later"] = "x".into()), "nothing");
    assert_eq!(with(&|p| drop(p.as_object_mut().expect("an object").remove("dropped"))), "nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Any value anywhere: refused, or analysed like any log.
    #[test]
    fn no_digest_panics(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..9), 1..6)) {
        let dir = dir();
        let logs = fixtures().into_iter().find(|l| l[0].contains("collective-mismatch-one-rank")).expect("the fixture");
        let mut lines = lines(&digest_of(&logs, &dir.path().join("a.digest")));
        for (line, place, what) in changes {
            let most = lines.len().min(6);
            let line = &mut lines[line.index(most)];
            let mut json: Value = serde_json::from_str(line).expect("JSON");
            let mut leaves = Vec::new();
            leaves_of(&json, String::new(), &mut leaves);
            let path = &leaves[place.index(leaves.len())];
            let values = [0.into(), 1.into(), u64::from(u32::MAX).into(), (1u64 << 43).into(), (-1).into(), Value::Null, "rank 3".into(), true.into(), Value::Array(Vec::new())];
            *json.pointer_mut(path).expect("a leaf") = values[what].clone();
            *line = json.to_string();
        }
        let path = dir.path().join("b.digest");
        fs::write(&path, packed(&lines)).expect("writable");
        let outcome = analyze(&options(&[path.display().to_string()]), &Silent);
        for format in [ncclog::report::Format::Json, ncclog::report::Format::Text, ncclog::report::Format::Html, ncclog::report::Format::Markdown] {
            ncclog::report::write(format, &outcome.analysis, &mut Vec::new(), &ncclog::report::Options::default()).expect("memory");
        }
    }
}

fn leaves_of(value: &Value, path: String, leaves: &mut Vec<String>) {
    match value {
        Value::Array(list) if !list.is_empty() => list.iter().enumerate().for_each(|(i, v)| leaves_of(v, format!("{path}/{i}"), leaves)),
        Value::Object(map) if !map.is_empty() => map.iter().for_each(|(k, v)| leaves_of(v, format!("{path}/{k}"), leaves)),
        _ => leaves.push(path),
    }
}

const HEAD: &str = "node1:7:7 [0] NCCL INFO";

/// A log of rank `rank` on `host`.
fn log(host: &str, rank: u32) -> String {
    let head = HEAD.replace("node1", host);
    let life = format!("rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xfeed5eed00c0ffee");
    format!(
        "{head} Bootstrap: Using eth0:10.0.0.{}<0>\n{head} NCCL version 2.27.7+cuda12.9\n{head} Using network IB\n{head} ncclCommInitRank comm 0x7f1 {life} - Init START\n{head} ncclCommInitRank comm 0x7f1 {life} - Init COMPLETE\n",
        rank + 1
    )
}

fn stderr(done: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&done.get_output().stderr).into_owned()
}

fn json_of(args: &[&str]) -> Value {
    let done = ncclog(&[&["analyze", "--format", "json", "--fail-on", "never"], args].concat()).code(0);
    serde_json::from_slice(&done.get_output().stdout).expect("JSON")
}

fn path_of(folder: &Path, name: &str, text: &[u8]) -> String {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
    fs::write(&path, text).expect("writable");
    path.display().to_string()
}

#[test]
fn the_commands_write_what_analyze_reads() {
    let dir = dir();
    let p = |name: &str| dir.path().join(name).display().to_string();
    let logs: Vec<String> = (0..2).map(|r| path_of(dir.path(), &format!("rank{r}.log"), log(["node1", "node2"][r as usize], r).as_bytes())).collect();
    let wanted = json_of(&[&logs[0], &logs[1]]);
    assert_eq!(wanted["verdict"], "healthy", "{wanted}");
    ncclog(&["digest", &logs[0], "-o", &p("a.digest")]).code(0).stdout("").stderr("");
    ncclog(&["digest", &logs[1], "-o", &p("b.digest")]).code(0);
    ncclog(&["merge", &p("b.digest"), &p("a.digest"), "-o", &p("all.digest")]).code(0).stdout("").stderr("");
    for inputs in [vec![p("a.digest"), p("b.digest")], vec![p("all.digest")], vec![logs[0].clone(), p("b.digest")]] {
        assert_eq!(json_of(&inputs.iter().map(String::as_str).collect::<Vec<_>>()), wanted, "{inputs:?}");
    }
    // Bare, packed, in a folder, in an archive, through a pipe.
    let bytes = fs::read(p("all.digest")).expect("readable");
    ncclog(&[&p("all.digest")]).code(0);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, &bytes).expect("memory");
    assert_eq!(json_of(&[&path_of(dir.path(), "all.digest.gz", &gz.finish().expect("memory"))]), wanted);
    fs::create_dir(dir.path().join("folder")).expect("folder");
    for name in ["a.digest", "b.digest"] {
        fs::copy(p(name), dir.path().join("folder").join(name)).expect("copied");
    }
    assert_eq!(json_of(&[&p("folder")]), wanted);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_path_with_name(p("a.digest"), "a.digest").expect("memory");
    tar.append_path_with_name(p("b.digest"), "b.digest").expect("memory");
    assert_eq!(json_of(&[&path_of(dir.path(), "all.tar", &tar.into_inner().expect("memory"))]), wanted);
    let piped = Command::cargo_bin("ncclog").expect("the binary").args(["analyze", "-", "--format", "json"]).write_stdin(bytes).assert().code(0);
    assert_eq!(serde_json::from_slice::<Value>(&piped.get_output().stdout).expect("JSON"), wanted);
    let out = ncclog(&["digest", &logs[0], "-o", "-"]).code(0);
    assert_eq!(out.get_output().stdout, fs::read(p("a.digest")).expect("readable"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let dir = dir();
    let p = |name: &str| dir.path().join(name).display().to_string();
    let log = path_of(dir.path(), "rank0.log", log("node1", 0).as_bytes());
    // A file that is missing: the rest is written.
    let done = ncclog(&["digest", &log, &p("gone.log"), "-o", &p("a.digest")]).code(2);
    assert!(stderr(&done).contains("gone.log: no such file"), "{}", stderr(&done));
    assert_eq!(json_of(&[&p("a.digest")])["inputs"].as_array().map(Vec::len), Some(1));
    // Nothing at all: no file.
    let done = ncclog(&["digest", &p("gone.log"), "-o", &p("none.digest")]).code(2);
    assert!(stderr(&done).contains("no digest was written") && !Path::new(&p("none.digest")).exists());
    // What is no digest is not merged, and nothing is written.
    let done = ncclog(&["merge", &log, &p("a.digest"), "-o", &p("m.digest")]).code(2);
    assert!(stderr(&done).contains("rank0.log: is no digest; make one with `ncclog digest`") && !Path::new(&p("m.digest")).exists(), "{}", stderr(&done));
    ncclog(&["merge", &p("gone.digest"), "-o", &p("m.digest")]).code(2);
    // An input is not overwritten; a former result is replaced.
    let done = ncclog(&["digest", &log, "-o", &log]).code(2);
    assert!(stderr(&done).contains("is one of the inputs"), "{}", stderr(&done));
    ncclog(&["merge", &p("a.digest"), "-o", &p("a.digest")]).code(2);
    path_of(dir.path(), "m.digest", b"older");
    ncclog(&["merge", &p("a.digest"), "-o", &p("m.digest")]).code(0);
    assert_eq!(json_of(&[&p("m.digest")]), json_of(&[&p("a.digest")]));
    ncclog(&["digest", &log, "-o", &p("no/such/folder.digest")]).code(2);
    ncclog(&["digest", &log]).code(2);
    ncclog(&["merge", "-o", &p("x.digest")]).code(2);
    let done = ncclog(&["events", &p("a.digest")]).code(2);
    assert!(stderr(&done).contains("it is a digest"), "{}", stderr(&done));
    // Damaged and newer ones: the rest is still analysed.
    let bytes = fs::read(p("a.digest")).expect("readable");
    let cut = path_of(dir.path(), "cut.digest", &bytes[..bytes.len() / 2]);
    let newer = path_of(dir.path(), "newer.digest", &[b"ncclog.digest/2\n", &bytes[16..]].concat());
    for (bad, text) in [(&cut, "is a damaged digest"), (&newer, "was written by a newer ncclog (digest format 2, this one reads 1)")] {
        let done = ncclog(&["analyze", &p("a.digest"), bad, "--format", "json"]).code(2);
        assert!(stderr(&done).contains(text), "{}", stderr(&done));
        let json: Value = serde_json::from_slice(&done.get_output().stdout).expect("JSON");
        assert_eq!(json["job"]["ranks"].as_array().map(Vec::len), Some(1), "{json}");
        let done = ncclog(&["merge", &p("a.digest"), bad, "-o", &p("z.digest")]).code(2);
        assert!(stderr(&done).contains(text) && !Path::new(&p("z.digest")).exists());
    }
}

#[test]
fn an_empty_log_and_a_log_twice() {
    let dir = dir();
    let p = |name: &str| dir.path().join(name).display().to_string();
    let empty = path_of(dir.path(), "empty.log", b"");
    ncclog(&["digest", &empty, "-o", &p("e.digest")]).code(0);
    assert_eq!(json_of(&[&p("e.digest")]), json_of(&[&empty]));
    let log = path_of(dir.path(), "rank0.log", log("node1", 0).as_bytes());
    ncclog(&["digest", &log, "-o", &p("a.digest")]).code(0);
    ncclog(&["merge", &p("a.digest"), &p("e.digest"), "-o", &p("all.digest")]).code(0);
    let both = json_of(&[&p("a.digest"), &p("all.digest"), &log]);
    assert_eq!(both["inputs"].as_array().map(Vec::len), Some(2), "{both}");
    let notes = both["notes"].to_string();
    assert!(notes.contains("tell of the same") && notes.contains("it was counted once"), "{notes}");
    assert_eq!(both["job"], json_of(&[&log, &empty])["job"]);
}

#[test]
fn logs_of_one_name_on_two_nodes_are_kept_apart() {
    let dir = dir();
    let mut digests = Vec::new();
    for (rank, host) in ["node1", "node2"].into_iter().enumerate() {
        let folder = dir.path().join(host);
        path_of(&folder, "nccl.log", log(host, rank as u32).as_bytes());
        let target = dir.path().join(format!("{host}.digest")).display().to_string();
        Command::cargo_bin("ncclog").expect("the binary").current_dir(&folder).args(["digest", "nccl.log", "-o", &target]).assert().code(0);
        digests.push(target);
    }
    let json = json_of(&[&digests[0], &digests[1]]);
    let names: Vec<&str> = json["inputs"].as_array().expect("a list").iter().filter_map(|i| i["path"].as_str()).collect();
    assert_eq!(names, ["node1.digest!nccl.log", "node2.digest!nccl.log"]);
    assert_eq!((json["job"]["nnodes"].as_u64(), json["job"]["ranks"].as_array().map(Vec::len)), (Some(2), Some(2)), "{json}");
    // The nodes' names live on in a merged digest.
    let all = dir.path().join("all.digest").display().to_string();
    ncclog(&["merge", &digests[1], &digests[0], "-o", &all]).code(0);
    assert_eq!(json_of(&[&all]), json);
    // One alone needs no other name.
    assert_eq!(json_of(&[&digests[0]])["inputs"][0]["path"], "nccl.log");
}

#[test]
fn a_digest_never_has_files_read() {
    let dir = dir();
    let logs = fixtures().into_iter().find(|l| l[0].contains("duplicate-gpu-old-wording")).expect("the fixture");
    let target = digest_of(&logs, &dir.path().join("a.digest"));
    let neighbours = |input: &str| {
        let done = ncclog(&["analyze", input, "--format", "html", "--fail-on", "never"]).code(0);
        String::from_utf8_lossy(&done.get_output().stdout).matches("<span class=\"dim\">").count()
    };
    assert!(logs.iter().map(|l| neighbours(l)).sum::<usize>() > 0);
    assert_eq!(neighbours(&target), 0);
}

#[test]
fn own_patterns_are_those_of_the_digest() {
    let dir = dir();
    let config =
        path_of(dir.path(), "ncclog.toml", b"[[rule]]\nid = \"carrier\"\nseverity = \"error\"\nconfidence = \"certain\"\ntitle = \"carrier lost\"\npattern = \"lost carrier\"\n");
    let log = path_of(dir.path(), "rank0.log", format!("{}{HEAD} eth0 lost carrier\n", log("node1", 0)).as_bytes());
    let p = |name: &str| dir.path().join(name).display().to_string();
    ncclog(&["digest", &log, "-o", &p("with.digest"), "--config", &config]).code(0);
    ncclog(&["digest", &log, "-o", &p("without.digest"), "--no-config"]).code(0);
    let finds = |json: &Value| json["findings"].as_array().expect("a list").iter().any(|f| f["id"] == "carrier");
    assert!(finds(&json_of(&[&p("with.digest"), "--config", &config])));
    assert!(!finds(&json_of(&[&p("with.digest"), "--no-config"])));
    let json = json_of(&[&p("without.digest"), "--config", &config]);
    assert!(!finds(&json) && json["notes"].to_string().contains("without.digest was made without your patterns"), "{json}");
}

#[test]
fn a_rank_stays_within_its_share() {
    let mut text = log("node1", 0);
    for c in 0..40 {
        let comm = format!("{:#x}", 0x5500_0000 + c * 0x1000);
        let life = format!("rank {c} nranks 64 cudaDev 0 nvmlDev 0 busId 1a000 commId {:#x}", 0xabc0 + c);
        text += &format!("{HEAD} ncclCommInitRank comm {comm} {life} - Init START\n");
        for peer in 0..40 {
            text += &format!("{HEAD} Channel {peer:02}/0 : {c}[0] -> {}[0] [send] via NET/IB/{peer}/GDRDMA\n", peer + 100);
        }
        text += &format!("{HEAD} ncclCommInitRank comm {comm} {life} - Init COMPLETE\n");
        for i in 0..300 {
            text += &format!("{HEAD} AllReduce: opCount {i:x} sendbuff 0x7f00 recvbuff 0x7f80 count {} datatype 7 op 0 root 0 comm {comm} [nranks=64] stream 0x55\n", i * i % 1009);
        }
    }
    for i in 0..300 {
        text += &format!("node1:7:7 [0] misc/x.cc:{i} NCCL WARN Call number {} failed on the way to nowhere: {}\n", ["a", "b", "c"][i % 3], "word".repeat(i));
    }
    let dir = dir();
    let log = path_of(dir.path(), "rank0.log", text.as_bytes());
    let digest = digest_of(std::slice::from_ref(&log), &dir.path().join("a.digest"));
    let longest = lines(&digest).iter().map(String::len).max().expect("lines");
    assert!((40_000..=100 * 1024).contains(&longest), "{longest}");
    let json = report(std::slice::from_ref(&log));
    assert_eq!(report(&[digest]), json);
    assert!(json["notes"].to_string().contains("were counted but not kept"), "{}", json["notes"]);
}
