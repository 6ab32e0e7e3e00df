//! Lines that say whose output follows and which: the marks of collected files, prompts, bare commands.

use super::gate::{MARKS, is_command, is_rule};
use super::model::Naming;
use super::reader::Memo;
use super::runner;

/// What such a line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heading<'t> {
    /// Host, and how sure.
    pub host: Option<(&'t str, Naming)>,
    /// Command; empty if the line names none.
    pub command: &'t str,
    /// Time of collection.
    pub time: &'t str,
    /// Exit code of the command that ends here.
    pub exit: Option<i32>,
    /// The line is a mark of a collected file.
    pub collected: bool,
    /// The host is the answer of a command, which says nothing new where a prompt or mark named it.
    pub answer: bool,
    /// The command runs on another host than the prompt's, and what follows it does not.
    pub away: bool,
}

/// Reads a line that says whose output follows and which.
pub fn heading<'t>(text: &'t str, memo: &Memo) -> Option<Heading<'t>> {
    text.strip_prefix("### ").and_then(mark).or_else(|| prompt(text)).or_else(|| bare(text)).or_else(|| hostname(text, memo))
}

/// The marks of a collected file.
fn mark(rest: &str) -> Option<Heading<'_>> {
    let base = Heading { collected: true, ..Heading::default() };
    if let Some(fields) = rest.strip_prefix("ncclog-collect ") {
        let field = |name: &str| fields.split_whitespace().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
        return Some(Heading { host: field("host").map(|h| (h, Naming::Marker)), time: field("time").unwrap_or_default(), ..base });
    }
    if let Some(command) = rest.strip_prefix("$ ") {
        return Some(Heading { command: command.trim(), ..base });
    }
    rest.strip_prefix("exit ").map(|code| Heading { exit: code.trim().parse().ok(), ..base })
}

/// `user@host:~$ cmd`, `[user@host dir]# cmd`, `(env) root@host:/work# cmd`, `$ cmd`, `# cmd`.
fn prompt(text: &str) -> Option<Heading<'_>> {
    let head = super::reader::clip(text, 160);
    head.match_indices(['$', '#', '%', '>']).take(6).find_map(|(at, sign)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let command = after.trim_start();
        let spaced = command.len() < after.len();
        if !spaced || !is_command(command.split([' ', ';']).next()?.as_bytes()) {
            return None;
        }
        let who = before.rsplit(['[', ' ', '(']).find_map(|w| w.split_once('@')).map(|(_, host)| host.split([':', ' ', ']', ')']).next().unwrap_or(host));
        // `node1:~ # `, `node1:/root$ `: a host and a folder.
        let who = who.or_else(|| before.trim_end().split_once(':').filter(|(host, folder)| is_name(host) && folder.starts_with(['~', '/']) && !folder.contains(' ')).map(|w| w.0));
        // A comment in a script reads like a root prompt; only a bare one, or one right behind a name, is taken for it.
        let short = before.len() < 60 && !before.contains(' ');
        let fits = who.is_some() || before.trim().is_empty() || (short && (sign != "#" || is_name(before)) && sign != ">");
        fits.then(|| under(who.filter(|h| !h.is_empty()), command.trim()))
    })
}

/// A heading whose command may be run by another one, and elsewhere.
fn under<'t>(who: Option<&'t str>, command: &'t str) -> Heading<'t> {
    let (elsewhere, command) = runner::inner(command);
    let host = elsewhere.or(who).map(|h| (h, Naming::Prompt));
    Heading { host, command, away: elsewhere.is_some(), ..Heading::default() }
}

/// What a machine may be called.
fn is_name(word: &str) -> bool {
    (2..=64).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) && word.as_bytes()[0].is_ascii_alphabetic()
}

/// `node1 | CHANGED | rc=0 >>` of Ansible: the output that follows is of this host.
pub fn ansible(text: &str) -> Option<&str> {
    let mut parts = text.strip_suffix(">>")?.split(" | ");
    let (name, state, code) = (parts.next()?, parts.next()?, parts.next()?);
    (is_name(name) && matches!(state, "CHANGED" | "SUCCESS" | "FAILED" | "UNREACHABLE!") && code.starts_with("rc=")).then_some(name)
}

/// A name between two rules of dashes (`dshbak`, `clush -b`): what follows is of this host. `line` is the line's number.
pub fn title(text: &str, memo: &mut Memo, line: u64) -> Option<String> {
    if is_rule(text.as_bytes()) {
        let (rule, title) = std::mem::replace(&mut memo.title, (line, String::new()));
        return Some(title).filter(|t| !t.is_empty() && rule + 2 == line);
    }
    // Banners shout, hosts do not.
    if memo.title.0 + 1 == line && memo.title.1.is_empty() && is_name(text) && !text.contains(char::is_uppercase) {
        text.clone_into(&mut memo.title.1);
    }
    None
}

/// A command alone on its line, as people put it above what they paste.
fn bare(text: &str) -> Option<Heading<'_>> {
    const TELLING: [&str; 15] = [
        "sudo",
        "nvidia-smi",
        "ibv_devices",
        "ibv_devinfo",
        "show_gids",
        "ibdev2netdev",
        "ibstat",
        "ibstatus",
        "rocm-smi",
        "rocminfo",
        "vulkaninfo",
        "ethtool",
        "lspci",
        "ulimit",
        "ib_write_bw",
    ];
    let arrow = text.starts_with(['❯', '➜']);
    let text = text.trim_start_matches(MARKS).trim_start_matches("Output of ").trim_matches(['`', '*', ':', ' ']);
    // The prompt of a shell that shows its folder: `➜  ~ `, `➜  work git:(main) ✗ `.
    let at = if arrow { text.match_indices(' ').map(|(at, _)| at + 1).take(4).find(|at| text[*at..].split(' ').next().is_some_and(|w| is_command(w.as_bytes()))) } else { None };
    let text = at.map_or(text, |at| &text[at..]);
    let mut words = text.split(' ');
    let first = words.next()?;
    let plain = |w: &str| w.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'|' | b':' | b'\'' | b'"'));
    // `rdma link`, `ip -br addr`, `cat /proc/cmdline`.
    let pair = matches!((first, words.clone().next()), ("rdma", Some("link" | "dev")) | ("ip", Some("-br" | "addr" | "link" | "-d" | "a")))
        || text == "cat /proc/cmdline"
        || text.starts_with("df -h");
    let telling = TELLING.contains(&first) && words.clone().count() <= 6 && words.clone().all(|w| plain(w) && (w.starts_with('-') || w.len() < 20));
    // `nvidia-smi failed because …` is talk.
    let option =
        words.next().is_none_or(|w| w.starts_with('-') || matches!(w, "topo" | "|") || matches!(first, "ethtool" | "ibstat") || (first == "sudo" && is_command(w.as_bytes())));
    (pair || telling && option).then(|| under(None, text))
}

/// The answer of `hostname`, or `uname -a`.
fn hostname<'t>(text: &'t str, memo: &Memo) -> Option<Heading<'t>> {
    let mut asked = memo.command.split_whitespace();
    let name = match asked.next()? {
        "hostname" if !text.contains(char::is_whitespace) && asked.all(|w| matches!(w, "-f" | "-s")) => text,
        "uname" => text.strip_prefix("Linux ")?.split(' ').next()?,
        _ => return None,
    };
    Some(Heading { host: Some((name, Naming::Prompt)), answer: true, ..Heading::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(Option<&str>, &str)> {
        heading(text, &Memo::default()).map(|h| (h.host.map(|(n, _)| n), h.command))
    }

    #[test]
    fn prompts_and_commands() {
        assert_eq!(of("ada@orion:~$ ibv_devinfo -v"), Some((Some("orion"), "ibv_devinfo -v")));
        assert_eq!(of("[root@orion ~]# cat /proc/cmdline"), Some((Some("orion"), "cat /proc/cmdline")));
        assert_eq!(of("(venv) ada@orion:/data/run$ sudo lspci -vvv | grep ACSCtl"), Some((Some("orion"), "lspci -vvv | grep ACSCtl")));
        assert_eq!(of("$ nvidia-smi topo -m"), Some((None, "nvidia-smi topo -m")));
        assert_eq!(of("# show_gids"), Some((None, "show_gids")));
        assert_eq!(of("orion$ ip -br addr"), Some((None, "ip -br addr")));
        assert_eq!(of("rdma link show"), Some((None, "rdma link show")));
        assert_eq!(of("`nvidia-smi topo -p2p r`:"), Some((None, "nvidia-smi topo -p2p r")));
        for text in [
            "node1:~ # ulimit -l",
            "node1:/root# ulimit -l",
            "[root@node1]# ulimit -l",
            "ada@node1 ~> ulimit -l",
            "$ ssh -p 22 ada@node1 ulimit -l",
            "ada@head:~$ ssh node1 'ulimit -l'",
        ] {
            assert_eq!(of(text), Some((Some("node1"), "ulimit -l")), "{text}");
        }
        for text in [
            "node1# ulimit -l",
            "➜  ~ ulimit -l",
            "➜  work git:(main) ✗ ulimit -l",
            "+ ulimit -l",
            "$> ulimit -l",
            "- `ulimit -l`",
            "### ulimit -l",
            "**ulimit -l**",
            "Output of `ulimit -l`:",
            "sudo ulimit -l",
        ] {
            assert_eq!(of(text).map(|h| (h.0, h.1.trim_start_matches("sudo "))), Some((None, "ulimit -l")), "{text}");
        }
        assert_eq!(ansible("gpu-01 | CHANGED | rc=0 >>"), Some("gpu-01"));
        assert_eq!(ansible("gpu-01 | all is well | rc >>"), None);
        assert_eq!(of("export NCCL_DEBUG=INFO # ip link shows it"), None);
        assert_eq!(of("- nvidia-smi says no"), None);
        assert_eq!(of("nvidia-smi has failed because it could not talk to the driver"), None);
        assert_eq!(of("it costs 5 $ ip address and more"), None);
        assert_eq!(of("mlx5_0 port 1 ==> eth0 (Up)"), None);
    }

    #[test]
    fn marks_of_collected_files() {
        let head = heading("### ncclog-collect 1 host=orion time=2026-05-04T10:00:00Z", &Memo::default()).expect("mark");
        assert_eq!((head.host, head.time), (Some(("orion", Naming::Marker)), "2026-05-04T10:00:00Z"));
        assert_eq!(heading("### exit 127", &Memo::default()).and_then(|h| h.exit), Some(127));
        assert_eq!(of("### $ ip -br link"), Some((None, "ip -br link")));
        let asked = Memo { command: "hostname".to_owned(), ..Memo::default() };
        assert_eq!(heading("orion", &asked).and_then(|h| h.host), Some(("orion", Naming::Prompt)));
    }
}
