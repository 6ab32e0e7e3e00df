//! Which lines may be facts, by one look at each.

use super::FAMILIES;
use ahash::AHashSet;
use std::sync::LazyLock;

/// Longer lines are no facts.
pub const MAX_FACT_LINE: usize = 4096;
/// A line of one word is a value: a name, a GID.
const MAX_VALUE: usize = 64;

/// First words of the lines that the families want, and of commands without a prompt.
static STARTS: LazyLock<AHashSet<&'static [u8]>> = LazyLock::new(|| FAMILIES.iter().flat_map(|f| f.starts).chain(COMMANDS).map(|s| s.as_bytes()).collect());

/// Commands whose mention in front of an output tells what it is.
pub const COMMANDS: &[&str] = &[
    "sudo",
    "nvidia-smi",
    "ibv_devices",
    "ibv_devinfo",
    "show_gids",
    "rdma",
    "ibdev2netdev",
    "ibstat",
    "ibstatus",
    "ip",
    "ethtool",
    "cat",
    "grep",
    "head",
    "tail",
    "lspci",
    "dmesg",
    "journalctl",
    "ulimit",
    "df",
    "rocm-smi",
    "amd-smi",
    "rocminfo",
    "vulkaninfo",
    "ib_write_bw",
    "ib_read_bw",
    "ib_send_bw",
    "hostname",
    "hostnamectl",
    "uname",
    "for",
    "ls",
    // What runs one of them somewhere.
    "bash",
    "docker",
    "kubectl",
    "podman",
    "sh",
    "srun",
    "ssh",
    "timeout",
];

/// What people and shells put in front of a command: marks of lists, quotes and headings, the arrows of prompts.
pub const MARKS: [char; 10] = ['`', '*', '#', '>', '$', '+', '-', '❯', '➜', ' '];

/// Whether a line without an NCCL header may be a fact of a host. Cheap, and says yes too often rather than too rarely.
pub fn gate(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    if line.is_empty() || line.len() > MAX_FACT_LINE {
        return false;
    }
    let end = line.iter().position(|b| *b == b' ' || *b == b'\t').unwrap_or(line.len());
    let first = &line[..end];
    let rest = line[end..].trim_ascii_start();
    if rest.is_empty() {
        return first.len() <= MAX_VALUE && first.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/' | b'@'))
            || STARTS.contains(first)
            || is_path(first)
            || is_setting(first)
            || is_tree(first)
            || is_rule(first)
            || is_marked(line);
    }
    STARTS.contains(first) || by_form(first, rest) || is_prompt(line) || is_marked(line)
}

/// `- `ulimit -l``, `➜  ~ nvidia-smi`: a known command behind the marks of a text.
fn is_marked(line: &[u8]) -> bool {
    if line.len() > 120 || !matches!(line[0], b'`' | b'*' | b'#' | b'>' | b'$' | b'+' | b'-' | 0xe2) {
        return false;
    }
    std::str::from_utf8(line).is_ok_and(|text| text.split(MARKS).any(|word| is_command(word.as_bytes())))
}

/// Lines whose first word is a name or a number.
fn by_form(first: &[u8], rest: &[u8]) -> bool {
    let end = rest.iter().position(|b| *b == b' ' || *b == b'\t').unwrap_or(rest.len());
    let second = &rest[..end];
    match first[0] {
        b'|' => second.iter().all(u8::is_ascii_digit) || second == b"NVIDIA-SMI" || is_tree(rest),
        b'/' | b'=' => is_path(rest) || is_path(first) || rest.ends_with(b"=") && memchr::memmem::find(rest, b"between two GPUs").is_some(),
        b'#' if first == b"#" => rest.starts_with(b"Avg bus bandwidth") || is_prompt_command(rest),
        b'#' => first == b"###" && (second == b"$" || second == b"exit" || second == b"ncclog-collect"),
        b'-' | b'+' | b'\\' => is_tree(first),
        // An index, a PCI address, a row of a result.
        b'0'..=b'9' => {
            second == b"RoCE"
                || second == b"IB/RoCE"
                || first.ends_with(b":")
                || first.contains(&b'.')
                || is_number(second)
                || second.starts_with(b"Gb/sec")
                || second == b"MB/sec"
                || matches!(second, b"NVIDIA" | b"Tesla" | b"Quadro") && first.ends_with(b",")
                || second == b"port"
        }
        _ => {
            matches!(second, b"UP" | b"DOWN" | b"UNKNOWN" | b"LOWERLAYERDOWN" | b"DORMANT" | b"port" | b"=" | b"inet" | b"inet6")
                || second.len() == 1 && second[0].is_ascii_digit()
                || second.len() == 16 && second.iter().all(u8::is_ascii_hexdigit)
                || first.ends_with(b":") && (rest.starts_with(b"<") || rest.starts_with(b"flags="))
                || first.starts_with(b"GID[")
                || first.starts_with(b"GPU[")
                || first.len() > 3 && first.starts_with(b"GPU") && first[3].is_ascii_digit()
                || first.len() == 7 && first[2] == b':' && first[5] == b'.'
                || first.len() == 12 && first[4] == b':' && first[7] == b':'
                || rest.ends_with(b" /dev/shm")
                || second == b"|" && rest.ends_with(b">>")
                || is_path(first)
                || is_setting(first)
        }
    }
}

fn is_number(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_digit) && word.iter().all(|b| b.is_ascii_digit() || *b == b'.')
}

/// A file of a port below `/sys/class/infiniband`, or `/proc/cmdline`.
fn is_path(word: &[u8]) -> bool {
    let head = &word[..word.len().min(200)];
    memchr::memchr(b'/', head).is_some() && (memchr::memmem::find(head, b"/ports/").is_some() || memchr::memmem::find(head, b"/proc/cmdline").is_some())
}

/// A line of dashes.
pub fn is_rule(word: &[u8]) -> bool {
    word.len() >= 8 && word.iter().all(|b| *b == b'-')
}

/// Part of the tree of `lspci -t`: `-[0000:00]-+-00.0`, `+-01.0-[41]----00.0`.
fn is_tree(text: &[u8]) -> bool {
    let head = &text[..text.len().min(200)];
    memchr::memmem::find(head, b"-[").is_some_and(|at| head.get(at + 2).is_some_and(u8::is_ascii_hexdigit))
}

/// `BOOT_IMAGE=/vmlinuz-6.8`, `root=UUID=…`: the kernel's command line.
fn is_setting(word: &[u8]) -> bool {
    [&b"BOOT_IMAGE="[..], b"root=", b"initrd=", b"console=", b"init=", b"iommu=", b"amd_iommu=", b"intel_iommu="].iter().any(|p| word.starts_with(p))
}

/// `user@host:~$ nvidia-smi`, `[user@host ~]# ip link`, `$ ibv_devinfo`: a known command behind the sign of a prompt.
fn is_prompt(line: &[u8]) -> bool {
    let head = &line[..line.len().min(160)];
    let command_at = |at: usize| {
        let rest = line[at + 1..].trim_ascii_start();
        rest.len() < line.len() - at - 1 && is_prompt_command(rest)
    };
    let fish = || memchr::memchr(b'@', &head[..head.len().min(40)]).is_some() && memchr::memchr_iter(b'>', head).take(2).any(command_at);
    memchr::memchr3_iter(b'$', b'#', b'%', head).take(4).any(command_at) || fish()
}

/// What stands behind the sign of a bare prompt is a known command.
fn is_prompt_command(rest: &[u8]) -> bool {
    is_command(&rest[..rest.iter().position(|b| *b == b' ' || *b == b';').unwrap_or(rest.len())])
}

/// The word is a command that tells facts, with or without its folder.
pub fn is_command(word: &[u8]) -> bool {
    let name = word.rsplit(|b| *b == b'/').next().unwrap_or(word);
    COMMANDS.iter().any(|c| c.as_bytes() == name) || name.ends_with(b"_perf")
}

#[cfg(test)]
mod tests {
    use super::gate;

    #[test]
    fn lines_of_facts_pass_and_talk_does_not() {
        for line in [
            "### ncclog-collect 1 host=orion time=2026-05-04T10:00:00Z",
            "### $ ip -br addr",
            "### exit 0",
            "lo               UNKNOWN        127.0.0.1/8 ::1/128",
            "2: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000",
            "    inet 192.0.2.7/24 brd 192.0.2.255 scope global enp1s0f0np0",
            "hca_id:\tmlx5_0",
            "root@orion:~# nvidia-smi topo -m",
            "[ada@orion ~]$ sudo ethtool ens1",
            "$ show_gids",
            "RoCE v2",
            "4: ACTIVE",
            "==> /sys/class/infiniband/mlx5_0/ports/1/state <==",
            "-[0000:40]-+-00.0  Advanced Micro Devices, Inc. [AMD] Device 14a4",
            " |           +-01.1-[41]----00.0  NVIDIA Corporation GB202 [GeForce RTX 5090]",
            "             \\-03.1-[61]----00.0",
        ] {
            assert!(gate(line.as_bytes()), "{line}");
        }
        for line in ["Loading model weights took 12.3 GB", "step 400 loss 2.31 lr 1e-4", "", "It costs $ 5 today", "# Heading of a page", "Traceback (most recent call last):"] {
            assert!(!gate(line.as_bytes()), "{line}");
        }
    }
}
