//! Logs of invented jobs, and the binary.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The lines of one rank of a start over `net`, up to and with Init COMPLETE.
pub fn start(rank: u32, nranks: u32, net: &str) -> Vec<String> {
    let host = format!("node{}", rank / 2 + 1);
    let head = format!("{host}:{}:{} [{}] NCCL INFO", 4000 + rank, 4100 + rank, rank % 2);
    let comm = format!("comm 0x55d0{rank}0 rank {rank} nranks {nranks} cudaDev {} nvmlDev {} busId {}000 commId 0x1f2e3d4c5b6a7988", rank % 2, rank % 2, rank % 2 + 1);
    let next = (rank + 1) % nranks;
    let via = if net == "IB" { "NET/IB/0/GDRDMA" } else { "NET/Socket/0" };
    let devices = if net == "IB" { "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.11<0>".to_owned() } else { "NET/Socket : Using [0]eth0:192.0.2.11<0>".to_owned() };
    [
        "Bootstrap : Using eth0:192.0.2.11<0>".to_owned(),
        "NCCL version 2.21.5+cuda12.4".to_owned(),
        devices,
        format!("Using network {net}"),
        format!("{comm} - Init START"),
        format!("Channel 00/0 : {rank}[{}] -> {next}[{}] [send] via {via}", rank % 2, next % 2),
        "Connected all rings".to_owned(),
        format!("{comm} - Init COMPLETE"),
    ]
    .into_iter()
    .map(|m| format!("{head} {m}\n"))
    .collect()
}

/// A line that is fatal for certain.
pub fn fatal(rank: u32) -> String {
    format!("[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free.\n")
}

/// The binary with `args`, its output caught; it has no terminal.
pub fn ncclog(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncclog"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
        command.env_remove(variable);
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asks a process to end, as Ctrl-C or a launcher does.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill is everywhere");
    assert!(status.success());
}

/// Waits for the end; a follower that does not end fails the test.
pub fn end(mut child: Child) -> Output {
    let limit = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > limit {
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("a child")
}

/// Reads from `pipe` until `wanted` has come; returns what came.
pub fn until(pipe: &mut impl Read, wanted: &str) -> String {
    let mut text = Vec::new();
    let mut byte = [0; 1];
    while !String::from_utf8_lossy(&text).contains(wanted) {
        assert!(pipe.read(&mut byte).expect("a pipe") > 0, "ended without {wanted}: {}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Both outputs as text.
pub fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Appends to a file.
pub fn append(path: &Path, text: &str) {
    use std::io::Write;
    std::fs::OpenOptions::new().append(true).create(true).open(path).and_then(|mut f| f.write_all(text.as_bytes())).expect("a writable folder");
}
