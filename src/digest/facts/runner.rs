//! Commands that run another one: `sudo`, `ssh HOST`, `kubectl exec POD --`, `srun -w HOST`, `bash -c`.

use super::gate::is_command;

/// Most of them around each other.
const MAX_DEPTH: usize = 6;

/// The host on which the innermost command runs, if one names it, and that command.
pub fn inner(command: &str) -> (Option<&str>, &str) {
    let (mut host, mut command) = (None, command.trim());
    for _ in 0..MAX_DEPTH {
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        let (named, rest) = match first.rsplit('/').next().unwrap_or(first) {
            "sudo" | "timeout" | "bash" | "sh" | "docker" | "podman" => (None, rest),
            "ssh" => operand(rest, &["-p", "-i", "-l", "-o", "-J", "-F", "-b", "-E"]).map_or((None, rest), |(name, rest)| (Some(name.rsplit('@').next().unwrap_or(name)), rest)),
            "kubectl" => {
                let exec = rest.split_once("exec ").map_or(rest, |(_, rest)| rest);
                operand(exec, &["-n", "-c", "--namespace", "--container"]).map_or((None, rest), |(pod, rest)| (pod.rsplit('/').next(), rest))
            }
            "srun" => (nodelist(rest), rest),
            _ => break,
        };
        let Some(next) = next_command(rest) else { break };
        (host, command) = (named.or(host), next);
    }
    (host, command)
}

/// The first word that is no option and no option's value, and what stands behind it.
fn operand<'t>(text: &'t str, valued: &[&str]) -> Option<(&'t str, &'t str)> {
    let mut rest = text.trim_start();
    loop {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        let behind = behind.trim_start();
        if word.is_empty() {
            return None;
        }
        if !word.starts_with('-') {
            return Some((word, behind));
        }
        rest = if valued.contains(&word) { behind.split_once(' ').map_or("", |(_, rest)| rest.trim_start()) } else { behind };
    }
}

/// The only node of `-w node1`, `--nodelist=node1`.
fn nodelist(options: &str) -> Option<&str> {
    let mut words = options.split_whitespace();
    let name = words.clone().find_map(|w| w.strip_prefix("--nodelist=")).or_else(|| words.find(|w| matches!(*w, "-w" | "--nodelist")).and_then(|_| words.next()))?;
    (!name.contains(['[', ','])).then_some(name)
}

/// The text from its first word on that is a known command, without the quotes around it.
fn next_command(text: &str) -> Option<&str> {
    let mut from = 0;
    for word in text.split(' ') {
        let bare = word.trim_start_matches(['\'', '"']);
        let name = bare.split([';', '\'', '"']).next().unwrap_or(bare);
        if is_command(name.as_bytes()) {
            let quoted = bare.len() < word.len();
            let found = &text[from + word.len() - bare.len()..];
            return Some(if quoted { found.split(['\'', '"']).next().unwrap_or(found) } else { found }.trim());
        }
        from += word.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::inner;

    #[test]
    fn what_runs_and_where() {
        for (command, host, what) in [
            ("sudo ibv_devinfo -v", None, "ibv_devinfo -v"),
            ("sudo -n bash -c 'ulimit -l'", None, "ulimit -l"),
            ("docker exec -it nccl bash -c \"ulimit -l\"", None, "ulimit -l"),
            ("ssh -o BatchMode=yes ada@node1 sudo lspci -tv", Some("node1"), "lspci -tv"),
            ("ssh head ibstat", Some("head"), "ibstat"),
            ("kubectl exec -n jobs -it worker-1 -- df -h /dev/shm", Some("worker-1"), "df -h /dev/shm"),
            ("srun -N1 -w node1 bash -c 'ulimit -l'", Some("node1"), "ulimit -l"),
            ("srun --nodelist=node[1-4] ibstat", None, "ibstat"),
            ("ssh node1", None, "ssh node1"),
            ("nvidia-smi topo -m", None, "nvidia-smi topo -m"),
            ("", None, ""),
        ] {
            assert_eq!(inner(command), (host, what), "{command}");
        }
    }
}
