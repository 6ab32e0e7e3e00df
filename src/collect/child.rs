//! One child process: its output bounded, its time bounded, ended with its whole group.

use super::MOST_BYTES;
use super::run::End;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at a running child.
const LOOK: Duration = Duration::from_millis(5);

/// How long a killed child, or one that left its output open to others, is waited for. A process that hangs in the
/// kernel cannot be killed at all.
const GRACE: Duration = Duration::from_millis(500);

/// Runs a program and gives its output, standard error included, and how it ended.
pub fn run(program: &Path, arguments: &[impl AsRef<OsStr>], path: &OsStr, limit: Duration, stop: &AtomicBool) -> (Vec<u8>, End) {
    let spawned = spawn(program, arguments, path);
    let (mut child, output) = match spawned {
        Ok(parts) => parts,
        // What a shell says of a file that it cannot run.
        Err(error) => return (format!("{}: {error}\n", program.display()).into_bytes(), End::Exit(126)),
    };
    let reader = Reader::start(output);
    let end = wait(&mut child, limit, stop);
    if !matches!(end, End::Exit(_)) {
        kill(&child);
        // Reaps it where it can be; else it stays behind with its hanging driver.
        wait(&mut child, GRACE, &AtomicBool::new(false));
    }
    let text = reader.take();
    if text.len() > MOST_BYTES {
        kill(&child);
        return (text[..MOST_BYTES].to_vec(), End::Cut);
    }
    (text, end)
}

fn spawn(program: &Path, arguments: &[impl AsRef<OsStr>], path: &OsStr) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    // As a shell calls it: programs print their own name.
    command.arg0(program.file_name().unwrap_or(program.as_os_str()));
    command.args(arguments).env("LC_ALL", "C").env("PATH", path).process_group(0);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn()?;
    // The command holds the writing ends; with them open here the reader would never see the end.
    drop(command);
    Ok((child, reader))
}

fn wait(child: &mut Child, limit: Duration, stop: &AtomicBool) -> End {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return End::Exit(code(status)),
            Ok(None) => {}
            Err(_) => return End::Exit(127),
        }
        if stop.load(Ordering::Relaxed) {
            return End::Interrupted;
        }
        if start.elapsed() >= limit {
            return End::TimedOut;
        }
        thread::sleep(LOOK);
    }
}

/// As a shell counts: a signal is 128 and its number.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn kill(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Reads beside the wait, so that a full pipe never stops the child.
struct Reader {
    text: Arc<Mutex<Vec<u8>>>,
    done: mpsc::Receiver<()>,
}

impl Reader {
    fn start(mut output: PipeReader) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let (send, done) = mpsc::channel();
        let shared = Arc::clone(&text);
        thread::spawn(move || {
            let mut piece = vec![0; 64 * 1024];
            while let Ok(n @ 1..) = output.read(&mut piece) {
                let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&piece[..n]);
                if text.len() > MOST_BYTES {
                    break;
                }
            }
            // Nobody listens any more if the child was given up.
            let _ = send.send(());
        });
        Self { text, done }
    }

    /// What came, and what still comes within the grace.
    fn take(self) -> Vec<u8> {
        let _ = self.done.recv_timeout(GRACE);
        std::mem::take(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: u64) -> (String, End) {
        let never = AtomicBool::new(false);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let (text, end) = run(Path::new("/bin/sh"), &["-c", script], &path, Duration::from_millis(limit), &never);
        (String::from_utf8_lossy(&text).into_owned(), end)
    }

    #[test]
    fn output_and_errors_in_their_order_with_the_code() {
        assert_eq!(sh("echo a; echo b >&2; echo c; exit 3", 5000), ("a\nb\nc\n".to_owned(), End::Exit(3)));
        assert_eq!(sh("kill -TERM $$", 5000).1, End::Exit(143));
        assert_eq!(sh("echo $LC_ALL; cat", 5000), ("C\n".to_owned(), End::Exit(0)), "nothing to read on standard input");
    }

    #[test]
    fn a_hanging_group_is_ended_and_what_it_said_kept() {
        let start = Instant::now();
        let (text, end) = sh("echo first; trap '' TERM INT; sleep 60 & echo $!; wait", 300);
        assert_eq!(end, End::TimedOut);
        assert!(text.starts_with("first\n") && start.elapsed() < Duration::from_secs(5), "{text}");
        let grandchild = text.lines().nth(1).expect("its number was printed");
        thread::sleep(Duration::from_millis(100));
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "the grandchild lives on: {state}");
    }

    #[test]
    fn endless_output_is_cut() {
        let (text, end) = sh("yes", 20_000);
        assert_eq!((text.len(), end), (MOST_BYTES, End::Cut));
    }

    #[test]
    fn what_keeps_the_output_open_does_not_hold_us() {
        let start = Instant::now();
        let (text, end) = sh("setsid sleep 5 & echo done", 4000);
        assert_eq!((text.as_str(), end), ("done\n", End::Exit(0)));
        assert!(start.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn an_interrupt_ends_it() {
        let stop = AtomicBool::new(true);
        let (_, end) = run(Path::new("/bin/sh"), &["-c", "sleep 60"], OsStr::new("/bin:/usr/bin"), Duration::from_secs(60), &stop);
        assert_eq!(end, End::Interrupted);
    }

    #[test]
    fn what_cannot_run_is_126() {
        let never = AtomicBool::new(false);
        let (text, end) = run(Path::new("/dev/null"), &["x"], OsStr::new(""), Duration::from_secs(1), &never);
        assert!(end == End::Exit(126) && text.starts_with(b"/dev/null: "), "{end:?}");
    }
}
