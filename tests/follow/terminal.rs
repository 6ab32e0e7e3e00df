//! The status block on a pseudo-terminal, which Python's standard library opens.

use crate::logs::start;
use std::fs;
use std::process::Command;

/// Runs the follower on a terminal of 80 columns, sends Ctrl-C, and prints its exit code and all that was shown.
const SCRIPT: &str = r#"
import os, pty, sys, time, fcntl, termios, struct, select
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
shown, start, asked, killed = b"", time.time(), False, False
while True:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    if not asked and b"ranks seen" in shown and time.time() - start > 2:
        os.write(fd, b"\x03")
        asked = True
    if time.time() - start > 50:
        os.kill(pid, 9)
        break
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(b"%d\n" % code + shown)
"#;

#[test]
fn a_terminal_shows_a_block_and_gets_the_report() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("no python3: the terminal is not tested");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..3u32 {
        let lines = start(rank, 4, "IB");
        let kept = if rank == 2 { 5 } else { 8 };
        fs::write(folder.path().join(format!("rank{rank}.log")), lines[..kept].concat()).expect("writes");
    }
    let output = Command::new("python3").args(["-c", SCRIPT, env!("CARGO_BIN_EXE_ncclog"), "follow"]).arg(folder.path()).output().expect("python3");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let (code, screen) = shown.split_once('\n').expect("a code");
    assert!(["0", "1"].contains(&code), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(screen.contains("3 of 4 ranks seen") && screen.contains("no log yet") && screen.contains("Init COMPLETE"), "{screen}");
    // After the block was cleared comes the report.
    assert!(screen.contains("Ranks") && screen.rfind("ranks seen") < screen.rfind("stage reached"), "{screen}");
    // No cursor is left hidden, no other screen is left open.
    assert!(!screen.contains("\u{1b}[?1049h") && screen.matches("\u{1b}[?25l").count() == screen.matches("\u{1b}[?25h").count(), "{screen:?}");
    // The terminal itself echoes Ctrl-C.
    let plain = strip(screen).replace("^C", "");
    // A row of the block fills its 80 columns and goes on below; nothing else is wider.
    assert!(plain.split(['\n', '\r']).map(|l| l.chars().count()).all(|n| n <= 80 || n % 80 == 0), "{plain}");
}

/// Takes control sequences out.
fn strip(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        for c in chars.by_ref() {
            if c.is_ascii_alphabetic() {
                // A new line begins wherever the cursor goes.
                out.push('\n');
                break;
            }
        }
    }
    out
}
