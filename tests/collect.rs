//! `ncclog collect` and its script, on hosts made of fake commands.

use assert_cmd::Command;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Commands of a host with two GPUs and one HCA. What they print looks like the real ones' output as far as it matters
/// here: empty, without end of line, on standard error, with our own marks in it.
const FAKES: &[(&str, &str)] = &[
    ("nvidia-smi", r#"case "$*" in "topo -m") printf '\tGPU0\tGPU1\nGPU0\t X \tPHB\n' ;; "") echo 'NVIDIA-SMI 570.00' ;; *) echo "no topology" >&2; exit 3 ;; esac"#),
    ("ibv_devices", "printf '    mlx5_0\\t0002c903000e0b72'"),
    ("ibv_devinfo", "echo '### exit 0'; echo '### $ rm'; echo hca_id: mlx5_0"),
    ("rdma", r#"[ "$LC_ALL" = C ] && echo 'link mlx5_0/1 state ACTIVE netdev ens1f0'"#),
    ("show_gids", "kill -TERM $$"),
    ("ethtool", r#"echo "Settings for $1:""#),
    ("lspci", "echo 'Capabilities: <access denied>'"),
    ("dmesg", "exit 1"),
    ("journalctl", "echo kernel: fake"),
];

struct Host {
    folder: TempDir,
}

impl Host {
    fn new(fakes: &[(&str, &str)]) -> Self {
        let host = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for (name, body) in fakes {
            let path = host.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("the folder is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        host
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn search_path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.path().display())
    }

    fn ncclog(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ncclog")).arg("collect").args(arguments).env("PATH", self.search_path()).output().expect("the binary runs")
    }

    /// As over ssh: the script comes by standard input.
    fn script(&self, shell: &str, arguments: &[&str]) -> String {
        let text = self.ncclog(&[&["--script"], arguments].concat()).stdout;
        let output = Command::new(shell).env("PATH", self.search_path()).write_stdin(text).output().expect("the shell runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Without the time, and without the kernel's messages, which may grow between two runs.
fn comparable(facts: &str) -> Vec<String> {
    facts.lines().map(|l| l.split(' ').filter(|w| !w.starts_with("time=")).collect::<Vec<_>>().join(" ")).collect()
}

fn section<'a>(facts: &'a str, command: &str) -> &'a str {
    let start = facts.find(&format!("### $ {command}\n")).unwrap_or_else(|| panic!("{command} is in\n{facts}"));
    let rest = &facts[start + 4..];
    rest.find("\n### $ ").map_or(rest, |end| &rest[..end])
}

fn shells() -> Vec<&'static str> {
    let works = |shell: &&str| Plain::new(shell).args(["-c", "exit 0"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    ["sh", "dash", "bash"].into_iter().filter(works).collect()
}

#[test]
fn binary_and_script_write_the_same_sections() {
    let host = Host::new(FAKES);
    let output = host.ncclog(&[]);
    assert_eq!(output.status.code(), Some(0));
    let facts = text(&output.stdout);
    assert!(facts.starts_with("### ncclog-collect 1 host="), "{facts}");
    for (command, wanted) in [
        ("nvidia-smi", "$ nvidia-smi\nNVIDIA-SMI 570.00\n### exit 0"),
        ("nvidia-smi topo -p2p r", "$ nvidia-smi topo -p2p r\nno topology\n### exit 3"),
        ("ibv_devices", "$ ibv_devices\n    mlx5_0\t0002c903000e0b72\n### exit 0"),
        ("ibv_devinfo -v", "$ ibv_devinfo -v\n ### exit 0\n ### $ rm\nhca_id: mlx5_0\n### exit 0"),
        ("rdma link show", "$ rdma link show\nlink mlx5_0/1 state ACTIVE netdev ens1f0\n### exit 0"),
        ("show_gids", "$ show_gids\n### exit 143"),
        ("rocminfo", "$ rocminfo\n### missing"),
        ("dmesg -T", "$ dmesg -T\n### exit 1"),
        ("dmesg", "$ dmesg\n### exit 1"),
    ] {
        assert_eq!(section(&facts, command), wanted);
    }
    assert!(section(&facts, "ulimit -a").lines().count() > 5);
    assert!(facts.ends_with("kernel: fake\n### exit 0\n"), "{facts}");
    for shell in shells() {
        assert_eq!(comparable(&host.script(shell, &[])), comparable(&facts), "{shell}");
    }
}

#[test]
fn the_summary_says_what_is_missing_and_what_comes_next() {
    let said = text(&Host::new(FAKES).ncclog(&[]).stderr);
    assert!(said.contains("not on this host") && said.contains("rocminfo") && !said.contains("ibv_devices"), "{said}");
    assert!(said.contains("only root is shown: the ACSCtl lines"), "{said}");
    assert!(said.contains("ncclog analyze rank*.log node*.txt"), "{said}");
}

#[test]
fn no_command_at_all_is_no_failure() {
    let output = Command::new(env!("CARGO_BIN_EXE_ncclog")).arg("collect").env("PATH", "/nowhere").output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0));
    let facts = text(&output.stdout);
    assert!(section(&facts, "ulimit -a").ends_with("### missing") && section(&facts, "nvidia-smi").ends_with("### missing"), "{facts}");
    let none = Command::new(env!("CARGO_BIN_EXE_ncclog")).arg("collect").env_remove("PATH").output().expect("the binary runs");
    assert_eq!(comparable(&text(&none.stdout)), comparable(&facts));
}

#[test]
fn a_hanging_command_costs_its_time_only() {
    let mut fakes = FAKES.to_vec();
    let sleep = own(61);
    let hang = format!("echo begun; trap '' TERM; sleep {sleep} & wait");
    fakes.push(("ibstat", &hang));
    let host = Host::new(&fakes);
    let wanted = "$ ibstat\nbegun\n### timed out after 1 s";
    let start = Instant::now();
    let output = host.ncclog(&["--timeout", "1s"]);
    let facts = text(&output.stdout);
    assert_eq!(section(&facts, "ibstat"), wanted);
    assert!(text(&output.stderr).contains("no answer within 1 s, which may be the finding: ibstat"));
    for shell in shells() {
        assert_eq!(section(&host.script(shell, &["--timeout", "1s"]), "ibstat"), wanted, "{shell}");
    }
    // A busy machine is slow; a hanging one would take a minute for each.
    assert!(start.elapsed() < Duration::from_secs(55));
    assert!(gone(&sleep), "a sleep was left behind");
}

/// A length of sleep that no other run of these tests uses.
fn own(seconds: u32) -> String {
    format!("{seconds}.{:07}", std::process::id())
}

/// Whether no such sleep is left, or soon will be.
fn gone(seconds: &str) -> bool {
    let start = Instant::now();
    while !living(seconds).is_empty() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(20));
    }
    living(seconds).is_empty()
}

/// Processes `sleep SECONDS` that are alive.
fn living(seconds: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok).map(|e| e.path());
    processes.filter(|p| fs::read(p.join("cmdline")).is_ok_and(|c| c == format!("sleep\0{seconds}\0").into_bytes())).collect()
}

/// Starts it, interrupts it as soon as the hanging command runs, and gives what it wrote.
fn interrupted(mut command: Plain, seconds: &str) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let start = Instant::now();
    while living(seconds).is_empty() && start.elapsed() < Duration::from_secs(40) {
        thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert!(start.elapsed() < Duration::from_secs(55));
    assert!(gone(seconds), "a child was left behind");
    output
}

#[test]
fn an_interrupt_keeps_what_was_read_and_leaves_no_child() {
    let mut fakes = FAKES.to_vec();
    let sleep = own(62);
    let hang = format!("echo begun; sleep {sleep}");
    fakes.push(("ip", &hang));
    let host = Host::new(&fakes);
    let file = host.path().join("facts.txt");
    let mut command = Plain::new(env!("CARGO_BIN_EXE_ncclog"));
    command.args(["collect", "--timeout", "60", "-o"]).arg(&file).env("PATH", host.search_path());
    let output = interrupted(command, &sleep);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("was stopped"), "{output:?}");
    let facts = fs::read_to_string(&file).expect("what there was is written");
    assert_eq!(section(&facts, "ip -br addr"), "$ ip -br addr\nbegun\n### interrupted");
    assert_eq!(section(&facts, "ibv_devices"), "$ ibv_devices\n    mlx5_0\t0002c903000e0b72\n### exit 0");

    let mut fakes = FAKES.to_vec();
    let sleep = own(63);
    let hang = format!("echo begun; sleep {sleep}");
    fakes.push(("ip", &hang));
    let host = Host::new(&fakes);
    let script = host.path().join("collect.sh");
    fs::write(&script, host.ncclog(&["--script", "--timeout", "60"]).stdout).expect("the folder is writable");
    let mut command = Plain::new("sh");
    command.arg(&script).env("PATH", host.search_path()).env("TMPDIR", host.path());
    let output = interrupted(command, &sleep);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).ends_with("### $ ip -br addr\nbegun\n### interrupted\n"), "{output:?}");
    let left = fs::read_dir(host.path()).expect("it is there").filter_map(Result::ok).filter(|e| e.file_name().to_string_lossy().starts_with("ncclog."));
    assert_eq!(left.count(), 0, "the temporary folder stays behind");
}

#[test]
fn endless_output_is_cut_alike() {
    let mut fakes = FAKES.to_vec();
    fakes.push(("ibstat", "dd if=/dev/zero bs=65536 count=65 2>/dev/null | tr '\\0' 'x'"));
    let host = Host::new(&fakes);
    let facts = text(&host.ncclog(&[]).stdout);
    let part = section(&facts, "ibstat");
    assert!(part.ends_with("x\n### cut after 4194304 bytes") && part.len() == 9 + 4_194_304 + 1 + 27, "{}", part.len());
    assert_eq!(section(&host.script("sh", &[]), "ibstat").len(), part.len());
}

#[test]
fn the_output_file_takes_the_hosts_name_and_spares_logs() {
    let host = Host::new(FAKES);
    let file = |name: &str| host.path().join(name).display().to_string();
    assert_eq!(host.ncclog(&["--host", "node7.example.org", "-o", &file("facts.%h.txt")]).status.code(), Some(0));
    let first = fs::read_to_string(file("facts.node7.txt")).expect("named after the host");
    assert!(first.starts_with("### ncclog-collect 1 host=node7.example.org time=20"), "{first}");
    assert_eq!(host.ncclog(&["--host", "node7", "-o", &file("facts.%h.txt")]).status.code(), Some(0), "facts may be read anew");

    let log = file("rank0.log");
    fs::write(&log, "node7:1:1 [0] NCCL INFO x\n").expect("the folder is writable");
    let refused = host.ncclog(&["-o", &log]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("holds no facts"), "{refused:?}");
    assert_eq!(fs::read_to_string(&log).expect("still there"), "node7:1:1 [0] NCCL INFO x\n");
    for (path, says) in [(file("no/such/file"), "there is no directory"), (file("."), "is a directory")] {
        let output = host.ncclog(&["-o", &path]);
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains(says), "{output:?}");
    }
}

#[test]
fn a_full_disk_ends_it() {
    let host = Host::new(FAKES);
    let full = host.ncclog(&["-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stderr).contains("/dev/full: cannot be written"), "{full:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let host = Host::new(FAKES);
    let mut child =
        Plain::new(env!("CARGO_BIN_EXE_ncclog")).arg("collect").env("PATH", host.search_path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_limit_that_is_no_number_is_told() {
    let host = Host::new(&[]);
    let text = host.ncclog(&["--script"]).stdout;
    let output = Command::new("sh").env("PATH", host.search_path()).env("NCCLOG_TIMEOUT", "soon").write_stdin(text).output().expect("the shell runs");
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn wrong_usage_is_told() {
    let host = Host::new(&[]);
    for arguments in [&["--timeout", "0"][..], &["--timeout", "1.5s"], &["--host", "a b"], &["--script", "--list"], &["--script", "-o", "x"], &["x"]] {
        assert_eq!(host.ncclog(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_list_names_every_command_and_its_causes() {
    let list = text(&Host::new(&[]).ncclog(&["--list"]).stdout).replace("\n    ", " ");
    for wanted in ["show_gids which", "ethtool IF", "(roce-qp-gid-mtu, tcp-fallback)", "without root it may not show the ACSCtl lines", "ulimit -a limits"] {
        assert!(list.contains(wanted), "{wanted}\n{list}");
    }
}

#[test]
fn shellcheck_has_nothing_to_say() {
    let host = Host::new(&[]);
    let script = host.path().join("collect.sh");
    fs::write(&script, host.ncclog(&["--script"]).stdout).expect("the folder is writable");
    assert!(Plain::new("sh").arg("-n").arg(&script).status().expect("there is a shell").success());
    let Ok(output) = Plain::new("shellcheck").arg("--shell=sh").arg(&script).output() else {
        eprintln!("shellcheck is not installed; only `sh -n` was asked");
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stdout));
}

/// Docs show the table of the binary; `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_documentation_shows_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/collect.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (begin, end) = ("<!-- commands:begin -->\n", "<!-- commands:end -->");
    let list = text(&Host::new(&[]).ncclog(&["--list"]).stdout);
    let wanted = format!("```text\n{list}```\n");
    let from = page.find(begin).expect("a mark begins the list") + begin.len();
    let to = page.find(end).expect("a mark ends the list");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{}{wanted}{}", &page[..from], &page[to..])).expect("the page is ours");
    } else {
        assert_eq!(&page[from..to], wanted, "run: UPDATE_DOCS=1 cargo test --test collect documentation");
    }
}

/// What is collected is what `analyze`, `env` and `fix` read.
#[test]
fn collected_facts_are_read_back() {
    let host = Host::new(&[
        ("dmesg", "true"),
        ("rdma", "echo 'link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0 '"),
        (
            "show_gids",
            "printf 'DEV\\tPORT\\tINDEX\\tGID\\tIPv4\\tVER\\tDEV\\n---\\t----\\t-----\\t---\\t------------\\t---\\t---\\nrocep1s0f0\\t1\\t0\\tfe80:0000:0000:0000:0200:5eff:fe10:0007\\t\\tv1\\tens1f0np0\\nrocep1s0f0\\t1\\t3\\t0000:0000:0000:0000:0000:ffff:0a14:0005\\t10.20.0.5\\tv2\\tens1f0np0\\nn_gids_found=2\\n'",
        ),
        ("ip", r#"if [ "$*" = '-br addr' ]; then printf 'lo               UNKNOWN        127.0.0.1/8 ::1/128 \nens1f0np0        UP             10.20.0.5/16 \n'; fi"#),
    ]);
    let file = host.path().join("vega.txt").display().to_string();
    assert_eq!(host.ncclog(&["--host", "vega", "-o", &file]).status.code(), Some(0));
    let script = host.path().join("script.txt").display().to_string();
    fs::write(&script, host.script("sh", &[])).expect("the folder is writable");
    for facts in [&file, &script] {
        let output = Command::new(env!("CARGO_BIN_EXE_ncclog")).args(["env", facts]).output().expect("the binary runs");
        let pins = text(&output.stdout);
        for wanted in ["NCCL_SOCKET_IFNAME='=ens1f0np0'", "NCCL_IB_HCA='=rocep1s0f0:1'", "VLLM_HOST_IP=10.20.0.5", "export NCCL_IB_GID_INDEX=3"] {
            assert!(pins.contains(wanted), "{wanted}\n{pins}{}", text(&output.stderr));
        }
    }
    let analysis = Command::new(env!("CARGO_BIN_EXE_ncclog")).args([&file, "--fail-on", "warning"]).output().expect("the binary runs");
    assert_eq!(analysis.status.code(), Some(0), "facts alone accuse nobody: {}", text(&analysis.stdout));
}
