//! The binary as people and scripts meet it: exit codes, standard input, pipes, broken inputs and outputs, colours.

use assert_cmd::Command;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use tempfile::TempDir;

/// Two ranks of one node that initialise and connect.
fn healthy() -> String {
    let mut log = String::new();
    for rank in 0..2 {
        let head = format!("node1:{}:{} [{rank}] NCCL INFO", 4000 + rank, 4100 + rank);
        let comm = format!("comm 0x55d0{rank}0 rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId {}000 commId 0x1f2e3d4c5b6a7988", rank + 1);
        for message in [
            "Bootstrap : Using eth0:192.0.2.11<0>".to_owned(),
            "NCCL version 2.21.5+cuda12.4".to_owned(),
            "Using network Socket".to_owned(),
            format!("{comm} - Init START"),
            format!("Channel 00/0 : {rank}[{rank}] -> {}[{}] via P2P/CUMEM", 1 - rank, 1 - rank),
            "Connected all rings".to_owned(),
            format!("{comm} - Init COMPLETE"),
        ] {
            writeln!(log, "{head} {message}").expect("a string takes all");
        }
    }
    log
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("rank0.log");
    fs::write(&log, healthy()).expect("the folder is writable");
    (folder, log)
}

fn ncclog() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncclog"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
        command.env_remove(variable);
    }
    command
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it exits by itself")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("reports are UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the binary runs")
}

#[test]
fn a_file_with_and_without_subcommand() {
    let (_folder, log) = folder();
    let bare = run(ncclog().arg(&log));
    assert_eq!((code(&bare), err(&bare).as_str()), (0, ""));
    assert!(out(&bare).starts_with("HEALTHY: 2 ranks on 1 node"), "{}", out(&bare));
    assert_eq!(out(&bare), out(&run(ncclog().arg("analyze").arg(&log))));
}

#[test]
fn a_directory_and_a_quoted_glob() {
    let (folder, log) = folder();
    let whole = out(&run(ncclog().arg(&log)));
    assert_eq!(out(&run(ncclog().arg(folder.path()))), whole);
    assert_eq!(out(&run(ncclog().arg(folder.path().join("rank*.log")))), whole);
}

#[test]
fn standard_input_by_dash_and_by_pipe() {
    for args in [&["-"][..], &[], &["analyze"], &["analyze", "-"]] {
        let output = run(ncclog().args(args).write_stdin(healthy()));
        assert_eq!(code(&output), 0, "{args:?}");
        assert!(out(&output).starts_with("HEALTHY"), "{args:?}: {}", out(&output));
    }
}

#[test]
fn json_is_json_and_deterministic() {
    let (_folder, log) = folder();
    let first = out(&run(ncclog().args(["--format", "json", "--threads", "1"]).arg(&log)));
    let document: serde_json::Value = serde_json::from_str(&first).expect("it is JSON");
    assert_eq!(document["schema"], "ncclog.analysis/1");
    assert_eq!(document["verdict"], "healthy");
    assert_eq!(document["job"]["nranks"], 2);
    assert_eq!(out(&run(ncclog().args(["--format", "json", "--threads", "4"]).arg(&log))), first);
}

#[test]
fn the_output_meets_the_schema_that_the_binary_prints() {
    let (_folder, log) = folder();
    let schema: serde_json::Value = serde_json::from_str(&out(&run(ncclog().arg("schema")))).expect("the schema is JSON");
    let document: serde_json::Value = serde_json::from_str(&out(&run(ncclog().args(["--format", "json"]).arg(&log)))).expect("it is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("the schema compiles");
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_missing_file_is_told_and_the_rest_reported() {
    let (folder, log) = folder();
    let output = run(ncclog().arg(&log).arg(folder.path().join("rank1.log")));
    assert_eq!(code(&output), 2);
    assert!(out(&output).starts_with("HEALTHY"), "{}", out(&output));
    let message = err(&output);
    assert!(message.starts_with("ncclog: ") && message.contains("rank1.log: ") && message.contains("; "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(code(&run(ncclog().args(["--fail-on", "never"]).arg(folder.path().join("rank1.log")))), 2);
}

#[cfg(unix)]
#[test]
fn a_link_to_itself_is_told() {
    let (folder, log) = folder();
    let knot = folder.path().join("knot.log");
    std::os::unix::fs::symlink(&knot, &knot).expect("links work here");
    let output = run(ncclog().arg(&log).arg(&knot));
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("knot.log: ") && out(&output).starts_with("HEALTHY"), "{}", err(&output));
}

#[test]
fn a_directory_without_logs_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(ncclog().arg(folder.path()));
    assert_eq!(code(&output), 2);
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
}

#[test]
fn a_binary_file_is_told() {
    let (folder, log) = folder();
    let binary = folder.path().join("core.log");
    fs::write(&binary, (0..20_000u32).flat_map(|n| [(n % 7) as u8, 0, 1, (n % 251) as u8]).collect::<Vec<u8>>()).expect("the folder is writable");
    let output = run(ncclog().arg(&log).arg(&binary));
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("core.log: is no text"), "{}", err(&output));
    assert!(out(&output).starts_with("HEALTHY"), "{}", out(&output));
}

#[test]
fn an_empty_file_holds_no_evidence() {
    let (folder, _) = folder();
    let empty = folder.path().join("empty.log");
    fs::write(&empty, "").expect("the folder is writable");
    let output = run(ncclog().arg(&empty));
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    assert!(out(&output).starts_with("INCONCLUSIVE: ") && out(&output).contains("next:  "), "{}", out(&output));
}

#[test]
fn hostile_text_stays_text() {
    let line = "node1:1:1 [0] NCCL WARN \x1b]0;title\x07\x1b[2J\u{202e}evil\n";
    let output = run(ncclog().args(["--color", "never"]).write_stdin(healthy() + line));
    assert!(!out(&output).contains(['\x1b', '\x07', '\u{202e}']), "{:?}", out(&output));
    let missing = run(ncclog().arg("no\x1b[31mfile.log"));
    assert!(err(&missing).contains("no\\x1b[31mfile.log"), "{:?}", err(&missing));
}

#[test]
fn damaged_numbers_are_survived() {
    let head = "node1:1:2 [0] NCCL INFO";
    let log = format!(
        "{head} comm 0x55 rank 4294967294 nranks 4294967295 cudaDev 4294967295 busId 1000 commId 0x1 - Init START\n\
         {head} comm 0x56 rank 4294967295 nranks 4294967295 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE\n\
         {head} Channel 4294967295/0 : 4294967294[1] -> 4294967295[1] via P2P/CUMEM\n\
         {head} AllReduce: opCount ffffffffffffffff sendbuff 0x1 recvbuff 0x2 count 18446744073709551615 datatype 255 op 255 root -2147483648 comm 0x55 stream 0x3\n"
    );
    for format in ["text", "json"] {
        let output = run(ncclog().args(["--format", format, "--fail-on", "never"]).write_stdin(log.clone()));
        assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    }
}

#[test]
fn wrong_usage_is_2() {
    for args in [&["--format", "xml", "x"][..], &["--fail-on", "x", "y"], &["--width", "3", "x"], &["--threads", "-1", "x"], &["--nonsense"], &["explain", "a", "b"]] {
        let output = run(ncclog().args(args));
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(out(&output).is_empty() && !err(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn a_mistyped_subcommand_is_recognised() {
    let output = run(ncclog().arg("explian"));
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("did you mean `ncclog explain`?"), "{}", err(&output));
}

#[test]
fn help_and_version_are_no_failure() {
    let help = run(ncclog().arg("--help"));
    assert_eq!(code(&help), 0);
    let text = out(&help);
    let (examples, usage) = (text.find("Examples:"), text.find("Usage:"));
    assert!(examples.is_some() && examples < usage && text.contains("Exit codes:"), "{text}");
    let version = run(ncclog().arg("--version"));
    assert_eq!((code(&version), out(&version)), (0, format!("ncclog {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (_folder, log) = folder();
    for args in [&["analyze"][..], &["analyze", "--format", "json"], &["analyze", "--color", "always"]] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ncclog"))
            .args(args)
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let (_folder, log) = folder();
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ncclog")).arg(&log).stdout(full).stderr(Stdio::piped()).output().expect("the binary runs");
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("standard output cannot be written"), "{}", err(&output));
}

#[test]
fn output_goes_to_a_file_as_a_whole() {
    let (folder, log) = folder();
    let target = folder.path().join("report.json");
    fs::write(&target, "old").expect("the folder is writable");
    let output = run(ncclog().args(["--format", "json", "--output"]).arg(&target).arg(&log));
    assert_eq!((code(&output), out(&output).as_str(), err(&output).as_str()), (0, "", ""));
    let written = fs::read_to_string(&target).expect("it was written");
    assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{written}");
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2, "a temporary file was left behind");
}

#[cfg(unix)]
#[test]
fn output_keeps_links_and_special_files() {
    let (folder, log) = folder();
    let (target, link) = (folder.path().join("report.txt"), folder.path().join("link.txt"));
    fs::write(&target, "").expect("the folder is writable");
    std::os::unix::fs::symlink(&target, &link).expect("links work here");
    assert_eq!(code(&run(ncclog().arg("--output").arg(&link).arg(&log))), 0);
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert!(fs::read_to_string(&target).expect("it is there").starts_with("HEALTHY"));

    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).expect("the pipe can be read")
    });
    assert_eq!(code(&run(ncclog().arg("--output").arg(&pipe).arg(&log))), 0);
    assert!(reader.join().expect("the reader ends").starts_with("HEALTHY"));
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let (folder, log) = folder();
    for target in [folder.path().join("none").join("report.txt"), folder.path().to_owned(), log.clone()] {
        let output = run(ncclog().arg("--output").arg(&target).arg(&log));
        assert_eq!(code(&output), 2, "{}", target.display());
        assert!(err(&output).contains(&target.display().to_string()), "{}", err(&output));
    }
    assert_eq!(fs::read_to_string(&log).expect("it is there"), healthy(), "the input was overwritten");
}

#[test]
fn colour_only_when_asked_on_a_pipe() {
    let (_folder, log) = folder();
    let has_color = |command: &mut Command| out(&run(command.arg(&log))).contains('\x1b');
    assert!(!has_color(&mut ncclog()));
    assert!(!has_color(ncclog().args(["--color", "never"]).env("CLICOLOR_FORCE", "1")));
    assert!(has_color(ncclog().args(["--color", "always"])));
    assert!(has_color(ncclog().env("CLICOLOR_FORCE", "1")));
    assert!(!has_color(ncclog().env("NO_COLOR", "1")));
    assert!(!has_color(ncclog().args(["--format", "json", "--color", "always"])));
}

#[test]
fn width_is_obeyed() {
    let (_folder, log) = folder();
    for width in [40, 80, 200] {
        let text = out(&run(ncclog().args(["--width", &width.to_string()]).arg(&log)));
        let widest = text.lines().filter(|l| !l.contains("rank0.log") && !l.contains("ncclog explain")).map(|l| l.chars().count()).max();
        assert!(widest <= Some(width), "{width}: {text}");
    }
}

#[test]
fn quiet_is_the_head_of_the_report() {
    let (_folder, log) = folder();
    let quiet = out(&run(ncclog().arg("-q").arg(&log)));
    assert!(quiet.lines().count() <= 4, "{quiet}");
    assert!(out(&run(ncclog().arg(&log))).starts_with(&quiet));
}

#[test]
fn explain_a_line() {
    let line = "node1:4000:4100 [0] NCCL INFO Using network Socket";
    let by_argument = run(ncclog().args(["explain", "--line", line]));
    assert_eq!(code(&by_argument), 0);
    let text = out(&by_argument);
    assert!(text.contains("Socket") && text.contains("host node1, pid 4000"), "{text}");
    assert_eq!(out(&run(ncclog().args(["explain", "--line", "-"]).write_stdin(line))), text);
}

#[test]
fn explain_every_cause_and_no_other() {
    let list = out(&run(ncclog().arg("explain")));
    for cause in ncclog::rules::causes() {
        assert!(list.lines().any(|l| l.starts_with(cause.id)), "{} in {list}", cause.id);
        assert_eq!(out(&run(ncclog().args(["explain", cause.id]))).trim_end(), cause.explanation.trim_end());
    }
    let output = run(ncclog().args(["explain", "no-such-cause"]));
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("no cause `no-such-cause`"), "{}", err(&output));
}

/// The severities in a report decide its exit code, for every fixture and every `--fail-on`.
#[test]
fn the_exit_code_follows_the_findings() {
    let fixtures = fs::read_dir(root().join("fixtures")).expect("there are fixtures");
    for path in fixtures.map(|e| e.expect("it can be read").path()).filter(|p| p.is_dir()) {
        let report = run(ncclog().args(["--format", "json"]).arg(&path));
        let document: serde_json::Value = serde_json::from_str(&out(&report)).expect("it is JSON");
        let findings = document["findings"].as_array().expect("it meets the schema");
        let any = |severity: &str| findings.iter().any(|f| f["severity"] == severity);
        let (error, warning) = (any("error"), any("error") || any("warning"));
        for (fail_on, expected) in [("error", error), ("warning", warning), ("never", false)] {
            let output = run(ncclog().args(["-q", "--fail-on", fail_on]).arg(&path));
            assert_eq!(code(&output), i32::from(expected), "--fail-on {fail_on} {}", path.display());
        }
        assert_eq!(code(&report), i32::from(error), "{}", path.display());
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The report in the README is what its first command prints; `UPDATE_README=1` writes it anew.
#[test]
fn readme_and_docs_show_the_real_output() {
    const BEGIN: &str = "<!-- output:begin -->\n";
    const END: &str = "<!-- output:end -->";
    for page in ["README.md", "docs/report.md"] {
        let path = root().join(page);
        let text = fs::read_to_string(&path).expect("the page").replace("\r\n", "\n");
        let (before, rest) = text.split_once(BEGIN).expect("the page marks where the output begins");
        let (block, after) = rest.split_once(END).expect("the page marks where the output ends");
        let mut expected = "```console\n".to_owned();
        for call in block.lines().filter(|l| l.starts_with("$ ncclog ")) {
            let result = run(ncclog().current_dir(root()).args(call.split_whitespace().skip(2)));
            assert_eq!(err(&result), "");
            write!(expected, "{call}\n{}", out(&result)).expect("a string takes all");
        }
        expected.push_str("```\n");
        if std::env::var_os("UPDATE_README").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).expect("the page is writable");
        } else {
            assert_eq!(block, expected, "run UPDATE_README=1 cargo test --test cli real_output");
        }
    }
}

#[test]
fn explanations_speak_chinese_where_asked_or_by_locale() {
    let explain = |arguments: &[&str], locale: &[(&str, &str)]| {
        let mut command = ncclog();
        for name in ["LC_ALL", "LC_MESSAGES", "LANG"] {
            command.env_remove(name);
        }
        let output = run(command.args(arguments).envs(locale.iter().copied()));
        assert_eq!(code(&output), 0);
        (out(&output), err(&output))
    };
    let (english, _) = explain(&["explain", "tcp-fallback"], &[("LANG", "C.UTF-8")]);
    let (chinese, said) = explain(&["explain", "tcp-fallback", "--lang", "zh"], &[]);
    assert!(chinese.contains("## 如何修复") && said.is_empty(), "{chinese}");
    assert_eq!(explain(&["explain", "tcp-fallback"], &[("LANG", "zh_CN.UTF-8")]).0, chinese);
    assert_eq!(explain(&["explain", "tcp-fallback"], &[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "en_US.UTF-8")]).0, english);
    assert_eq!(explain(&["explain", "tcp-fallback", "--lang", "en"], &[("LC_ALL", "zh_CN.UTF-8")]).0, english, "the option wins");
    let (untranslated, said) = explain(&["explain", "gpu-oom", "--lang", "zh"], &[]);
    assert!(untranslated.contains("# A GPU ran out of memory") && said.contains("以下为英文"), "{said}");
    assert!(explain(&["explain"], &[("LC_MESSAGES", "zh_CN.UTF-8")]).0.contains("两个 rank 用了同一块 GPU。"));
    let (tree, _) = explain(&["explain", "--tree", "--lang", "zh"], &[]);
    assert!(tree.contains("检查： nvidia-smi topo -m") && tree.contains("q-p2p-nvidia-or-amd-r9700"), "{tree}");
}

#[test]
fn reports_for_people_speak_chinese_and_those_for_programs_english() {
    let folder = root().join("fixtures/tcp-container-without-infiniband");
    let report = |arguments: &[&str]| out(&run(ncclog().env("LC_ALL", "zh_CN.UTF-8").arg(&folder).args(arguments)));
    let text = report(&[]);
    assert!(text.starts_with("降级：2 个节点之间的数据走的是 TCP（eth0）：NCCL_IB_HCA=mlx5 匹配不到任何 HCA\n证据： "), "{text}");
    for words in ["结论：1 个警告\n", "[警告，确定] tcp-fallback: ", "详解： `ncclog explain tcp-fallback --lang zh`\n", "rdma link show   # 每个 HCA 及其状态和接口", "到达的阶段"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(report(&["--format", "markdown"]).contains("### 结论"));
    let html = report(&["--format", "html"]);
    assert!(html.contains("<html lang=\"zh-Hans\">") && html.contains("<h2>结论</h2>"), "{html}");
    for format in ["json", "github", "sarif", "junit"] {
        let english = out(&run(ncclog().env("LC_ALL", "C").arg(&folder).args(["--format", format])));
        assert_eq!(report(&["--format", format, "--lang", "zh"]), english, "{format} is for programs");
    }
}

#[test]
fn a_bug_form_is_english_unless_chinese_is_asked_for() {
    let folder = root().join("fixtures/tcp-container-without-infiniband");
    let form = |locale: &str, more: &[&str]| {
        let form = out(&run(ncclog().env("LC_ALL", locale).arg(&folder).args(["--for", "nccl-issue"]).args(more)));
        form.contains("匹配不到任何 HCA")
    };
    assert!(!form("zh_CN.UTF-8", &[]), "those who read it may not know Chinese");
    assert!(form("C", &["--lang", "zh"]));
}
