//! `ncclog env` and `ncclog fix`: what they print is right for each node, and safe to give to a shell.

use assert_cmd::Command;
use std::fs;
use std::path::PathBuf;
use std::process::{Command as Plain, Output};
use tempfile::TempDir;

struct Case {
    folder: TempDir,
}

impl Case {
    fn new(files: &[(&str, &str)]) -> Self {
        let case = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for (name, text) in files {
            fs::write(case.path(name), text).expect("the folder is writable");
        }
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs with the folder's files beneath the working directory.
    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ncclog")).current_dir(self.folder.path()).args(arguments).output().expect("the binary runs")
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout)
    }

    fn bad(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Facts of a node with one port up on 10.20.0.0/16 whose right GID has this index, and a management port.
fn facts(host: &str, hca: &str, interface: &str, ip: u8, index: u8) -> String {
    format!(
        "### ncclog-collect 1 host={host} time=2026-05-04T10:00:00Z root=no\n\
         ### $ rdma link show\nlink {hca}/1 state ACTIVE physical_state LINK_UP netdev {interface}\nlink {hca}b/1 state DOWN physical_state DISABLED netdev {interface}b\n### exit 0\n\
         ### $ show_gids\nDEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n---     ----    -----   ---                                     ------------    ---     ---\n\
         {hca} 1 0 fe80:0000:0000:0000:0200:5eff:fe10:0007 v1 {interface}\n{hca} 1 {index} 0000:0000:0000:0000:0000:ffff:0a14:00{ip:02x} 10.20.0.{ip} v2 {interface}\n### exit 0\n\
         ### $ ip -br addr\nlo UNKNOWN 127.0.0.1/8\neno1 UP 192.168.40.{ip}/24\n{interface} UP 10.20.0.{ip}/16\n### exit 0\n"
    )
}

/// Two nodes over TCP because IB is switched off.
fn tcp(version: &str) -> String {
    let mut log = String::new();
    for (rank, host) in ["vega", "lyra"].iter().enumerate() {
        let head = format!("{host}:70{rank}:71{rank} [0] NCCL INFO");
        let comm = format!("comm 0x5{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x5a77");
        for message in [
            format!("Bootstrap: Using eno1:192.168.40.{}<0>", 5 + 2 * rank),
            format!("NCCL version {version}"),
            "NCCL_IB_DISABLE set by environment to 1.".to_owned(),
            format!("NET/Socket : Using [0]eno1:192.168.40.{}<0>", 5 + 2 * rank),
            "Using network Socket".to_owned(),
            format!("ncclCommInitRank {comm} - Init START"),
            format!("Channel 00/0 : {rank}[0] -> {}[0] [send] via NET/Socket/0", 1 - rank),
            "Connected all rings".to_owned(),
            format!("ncclCommInitRank {comm} - Init COMPLETE"),
        ] {
            log.push_str(&format!("{head} {message}\n"));
        }
    }
    log
}

fn two_nodes(version: &str) -> Case {
    let (vega, lyra) = (facts("vega", "rocep1s0f0", "ens1f0np0", 5, 3), facts("lyra", "rocep2s0", "ens2np0", 7, 9));
    Case::new(&[("job.log", &tcp(version)), ("vega.txt", &vega), ("lyra.txt", &lyra)])
}

/// What a shell has in its environment after it ran the lines.
fn environment(script: &str) -> Vec<(String, String)> {
    let output = Plain::new("sh").env_clear().arg("-c").arg("eval \"$1\"; env").arg("sh").arg(script).output().expect("there is a shell");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let pair = |line: &str| line.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned()));
    let shells_own = ["PWD", "SHLVL", "_", "OLDPWD"];
    text(&output.stdout).lines().filter_map(pair).filter(|(n, _)| !shells_own.contains(&n.as_str())).collect()
}

#[test]
fn each_node_gets_its_own_names() {
    let case = two_nodes("2.20.5+cuda12.4");
    for (node, interface, hca, address, index) in [("vega", "ens1f0np0", "rocep1s0f0", "10.20.0.5", "3"), ("lyra", "ens2np0", "rocep2s0", "10.20.0.7", "9")] {
        let script = case.good(&["fix", "job.log", "vega.txt", "lyra.txt", "--for-node", node]);
        let set = environment(&script);
        for (name, wanted) in [
            ("NCCL_SOCKET_IFNAME", format!("={interface}")),
            ("GLOO_SOCKET_IFNAME", interface.to_owned()),
            ("NCCL_IB_HCA", format!("={hca}:1")),
            ("NCCL_IB_DISABLE", "0".to_owned()),
            ("NCCL_NET", "IB".to_owned()),
            ("VLLM_HOST_IP", address.to_owned()),
            ("NCCL_IB_GID_INDEX", index.to_owned()),
        ] {
            assert!(set.contains(&(name.to_owned(), wanted.clone())), "{node} {name}={wanted}\n{script}");
        }
        assert_eq!(set.len(), 7, "{set:?}");
        assert!(script.contains("to take it back: export NCCL_IB_DISABLE=1; unset "), "{script}");
        assert!(!script.contains('<'), "nothing is left open\n{script}");
    }
}

#[test]
fn a_library_that_finds_the_gid_gets_no_number() {
    let case = two_nodes("2.27.3+cuda12.9");
    let script = case.good(&["fix", "job.log", "vega.txt", "lyra.txt"]);
    assert!(!script.contains("NCCL_IB_GID_INDEX"), "{script}");
    let pins = case.good(&["env", "job.log", "vega.txt", "lyra.txt"]);
    assert!(pins.contains("# NCCL finds the GID by itself here; where it chooses wrongly: export NCCL_IB_GID_INDEX=3"), "{pins}");
    assert!(environment(&pins).iter().all(|(n, _)| n != "NCCL_IB_GID_INDEX"));
}

#[test]
fn without_facts_there_is_a_rule_and_no_number() {
    let case = Case::new(&[("job.log", &tcp("2.20.5+cuda12.4")), ("vega.txt", &facts("vega", "rocep1s0f0", "ens1f0np0", 5, 3))]);
    let script = case.good(&["fix", "job.log", "vega.txt", "--for-node", "lyra"]);
    assert!(!script.contains("IB_HCA=rocep1s0f0/1") && !script.contains("GID_INDEX=3"), "the other node's names\n{script}");
    assert_eq!(environment(&script), [("NCCL_IB_DISABLE".to_owned(), "0".to_owned())]);
}

#[test]
fn a_pinned_index_is_filled_from_the_nodes_own_table() {
    let log = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/roce-modify-qp-22-pinned-gid/mpirun.log"));
    let Ok(log) = log else { panic!("the fixture is there") };
    let case = Case::new(&[("job.log", &log), ("gx1.txt", &facts("gx1", "mlx5_bond_0", "bond0", 5, 4)), ("gx2.txt", &facts("gx2", "mlx5_bond_0", "bond0", 7, 6))]);
    let alone = case.good(&["fix", "job.log"]);
    assert!(alone.contains("# NCCL_IB_GID_INDEX: the index in this node's own `show_gids`"), "{alone}");
    assert!(environment(&alone).iter().all(|(n, _)| n != "NCCL_IB_GID_INDEX"), "{alone}");
    for (node, index) in [("gx1", "4"), ("gx2", "6")] {
        let script = case.good(&["fix", "job.log", "gx1.txt", "gx2.txt", "--for-node", node]);
        assert!(environment(&script).contains(&("NCCL_IB_GID_INDEX".to_owned(), index.to_owned())), "{script}");
    }
}

#[test]
fn a_wrong_index_is_replaced_on_the_node_that_has_it() {
    let case = Case::new(&[]);
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/facts-roce-pinned-index-wrong-on-one-node").display().to_string();
    let of = |node: &str| environment(&case.good(&["fix", &fixture, "--for-node", node, "--cause", "roce-qp-gid-mtu"]));
    assert_eq!(of("wren"), [("NCCL_IB_GID_INDEX".to_owned(), "5".to_owned())]);
    assert_eq!(of("lark"), [("NCCL_IB_GID_INDEX".to_owned(), "3".to_owned())]);
    let script = case.good(&["fix", &fixture, "--for-node", "wren"]);
    assert!(script.contains("# on wren") && !script.contains("# on lark"), "the other node's commands are left out\n{script}");
}

#[test]
fn a_folder_of_files_for_docker_and_shells() {
    let case = two_nodes("2.20.5+cuda12.4");
    let output = case.run(&["fix", "job.log", "vega.txt", "lyra.txt", "-o", "env"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).contains("wrote env/vega.env") && text(&output.stderr).contains("wrote env/lyra.env"), "{output:?}");
    assert!(text(&output.stdout).lines().all(|l| l.is_empty() || l.starts_with('#')), "{output:?}");
    let file = fs::read_to_string(case.path("env/lyra.env")).expect("it was written");
    // Docker takes every line that is no comment as NAME=VALUE, without looking for quotes.
    let docker: Vec<(String, String)> =
        file.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(|l| l.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).expect("NAME=VALUE")).collect();
    let mut shell = environment(&format!("set -a; . {}; set +a", case.path("env/lyra.env").display()));
    let mut sorted = docker.clone();
    sorted.sort();
    shell.sort();
    assert_eq!(sorted, shell);
    assert!(docker.contains(&("NCCL_IB_HCA".to_owned(), "=rocep2s0:1".to_owned())), "{docker:?}");

    assert_eq!(case.run(&["fix", "job.log", "vega.txt", "-o", "env"]).status.code(), Some(0), "its own files are written anew");
    fs::write(case.path("env/vega.env"), "TOKEN=x\n").expect("the folder is writable");
    assert!(case.bad(&["fix", "job.log", "vega.txt", "-o", "env"]).contains("was not written by `ncclog fix`"));
    assert_eq!(fs::read_to_string(case.path("env/vega.env")).expect("still there"), "TOKEN=x\n");
    assert!(case.bad(&["fix", "job.log", "-o", "job.log"]).contains("is no directory"));
}

#[test]
fn the_shapes_for_launchers() {
    let case = two_nodes("2.20.5+cuda12.4");
    let files = ["job.log", "vega.txt", "lyra.txt"];
    let with = |place: &str| case.good(&[&["fix"], &files[..], &["--for", place]].concat());
    let slurm = with("slurm");
    let fake = case.path("hostname");
    fs::write(&fake, "#!/bin/sh\necho lyra\n").expect("the folder is writable");
    fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let chosen = environment(&format!("PATH={}:/usr/bin:/bin\n{slurm}", case.folder.path().display()));
    assert!(chosen.contains(&("VLLM_HOST_IP".to_owned(), "10.20.0.7".to_owned())), "{slurm}");
    let k8s = with("k8s");
    assert!(k8s.contains("env:\n  - name: NCCL_SOCKET_IFNAME\n    value: \"=ens1f0np0\""), "{k8s}");
    let ray = with("ray");
    assert!(ray.contains("ray start --node-ip-address=10.20.0.5") && ray.contains("ray_non_carry_over_env_vars.json") && ray.contains("\"NCCL_IB_GID_INDEX\""), "{ray}");
    let docker = with("docker");
    assert!(docker.contains("docker run --env-file") && docker.contains("\nNCCL_IB_HCA==rocep1s0f0:1\n"), "{docker}");
}

#[test]
fn a_hostile_log_cannot_speak_to_the_shell() {
    let log = tcp("2.27.3+cuda12.9").replace(
        "NCCL_IB_DISABLE set by environment to 1.",
        "NCCL_IB_HCA set to $(touch pwned);`touch pwned`\nvega:700:710 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1;touch pwned.",
    );
    let log = log.replace("lyra:", "ly;touch pwned;:");
    let case = Case::new(&[("job.log", &log)]);
    let output = case.run(&["fix", "job.log"]);
    let script = text(&output.stdout);
    let ran = Plain::new("sh").current_dir(case.folder.path()).arg("-c").arg(&script).output().expect("there is a shell");
    assert!(ran.status.success(), "{ran:?}\n{script}");
    assert!(!case.path("pwned").exists(), "{script}");
}

#[test]
fn names_that_are_not_there_are_told_with_what_was_meant() {
    let case = two_nodes("2.20.5+cuda12.4");
    assert!(case.bad(&["fix", "job.log", "--for-node", "vegas"]).contains("did you mean `vega`?"));
    assert!(case.bad(&["fix", "job.log", "--for-node", "zzz"]).contains("there is: vega, lyra"));
    assert!(case.bad(&["fix", "job.log", "--cause", "tcp-falback"]).contains("did you mean `tcp-fallback`?"));
    let other = case.bad(&["fix", "job.log", "--cause", "gpu-oom"]);
    assert!(other.contains("gpu-oom is not a finding here; there is: tcp-fallback"), "{other}");
    case.good(&["fix", "job.log", "--for-node", "VEGA.example.org", "--cause", "tcp-fallback"]);
}

#[test]
fn nothing_to_mend_is_no_failure() {
    let case = Case::new(&[("empty.log", "hello\n")]);
    let output = case.run(&["fix", "empty.log"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("nothing to mend"), "{output:?}");
    let missing = case.run(&["fix", "no-such.log"]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn settings_for_a_log() {
    let case = Case::new(&[]);
    let plain = environment(&case.good(&["env"]));
    let value = |list: &[(String, String)], name: &str| list.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    assert_eq!(value(&plain, "NCCL_DEBUG").as_deref(), Some("INFO"));
    assert_eq!(value(&plain, "NCCL_DEBUG_SUBSYS").as_deref(), Some("INIT,BOOTSTRAP,ENV,NET,GRAPH"));
    assert_eq!(value(&plain, "NCCL_DEBUG_FILE").as_deref(), Some("nccl.%h.%p.log"));
    assert_eq!(case.good(&["env"]), case.good(&["env", "debug"]));
    let hang = environment(&case.good(&["env", "hang", "--logs", "/shared/my logs"]));
    assert!(value(&hang, "NCCL_DEBUG_SUBSYS").is_some_and(|v| v.ends_with(",COLL")));
    assert_eq!(value(&hang, "NCCL_DEBUG_FILE").as_deref(), Some("/shared/my logs/nccl.%h.%p.log"));
    for place in ["docker", "slurm", "k8s", "ray", "vllm"] {
        let text = case.good(&["env", "hang", "--for", place]);
        assert!(text.contains("NCCL_DEBUG") && text.contains("TORCH_NCCL_DUMP_ON_TIMEOUT"), "{place}: {text}");
    }
    assert!(case.bad(&["env", "--logs", "~/logs"]).contains('~'));
}

#[test]
fn pins_need_facts() {
    let case = two_nodes("2.20.5+cuda12.4");
    assert!(case.bad(&["env", "job.log"]).contains("run `ncclog collect"));
    let pins = case.good(&["env", "vega.txt", "lyra.txt"]);
    assert!(pins.contains("# == vega ==\nexport NCCL_SOCKET_IFNAME='=ens1f0np0'") && pins.contains("only for NCCL before 2.21"), "{pins}");
    let one = case.good(&["env", "job.log", "vega.txt"]);
    assert!(one.contains("# lyra: no facts; run there: ncclog collect -o lyra.txt"), "{one}");
}
