//! Limits of a shell or process, and the size of `/dev/shm`.

use super::Family;
use super::model::{Fact, Limit, Shm};
use super::reader::Scene;

/// Locked memory and open files.
pub const LIMITS: Family = Family {
    commands: &["ulimit -a", "ulimit -l", "cat /proc/self/limits", "prlimit"],
    reads: "How much memory a process may lock, and how many files it may open.",
    starts: &["max", "Max", "MEMLOCK", "NOFILE", "open", "locked", "nofiles", "nofiles(descriptors)", "-l:", "-n:"],
    read: limits,
};

/// Shared memory.
pub const SHM: Family = Family { commands: &["df -h /dev/shm"], reads: "Size and free space of /dev/shm.", starts: &[], read: shm };

fn limit(word: &str, unit: u64) -> Option<Limit> {
    if word == "unlimited" {
        return Some(Limit::Unlimited);
    }
    word.parse::<u64>().ok().map(|n| Limit::Value(n.saturating_mul(unit)))
}

fn limits(scene: &mut Scene<'_>) -> bool {
    let words = scene.words.as_slice();
    // `ulimit -a` counts in kB, /proc in bytes.
    let (memlock, nofile) = match words {
        // bash; dash; zsh and busybox.
        ["max", "locked", "memory", .., value] | ["locked", "memory(kbytes)", value] | ["-l:", .., value] => (limit(value, 1024), None),
        ["Max", "locked", "memory", soft, ..] | ["MEMLOCK", .., soft, _, "bytes"] => (limit(soft, 1), None),
        ["open", "files", .., value] | ["nofiles" | "nofiles(descriptors)", value] | ["-n:", .., value] => (None, limit(value, 1)),
        ["Max", "open", "files", soft, ..] | ["NOFILE", .., soft, _, "files"] => (None, limit(soft, 1)),
        [value] if scene.memo.command.ends_with("ulimit -l") => (limit(value, 1024), None),
        [value] if scene.memo.command.ends_with("ulimit -n") => (None, limit(value, 1)),
        _ => (None, None),
    };
    if let Some(memlock) = memlock {
        scene.host.memlock = Some(Fact::new(memlock, scene.at));
    }
    if let Some(nofile) = nofile {
        scene.host.nofile = Some(Fact::new(nofile, scene.at));
    }
    memlock.is_some() || nofile.is_some()
}

/// `64M`, `1.5G`, `65536` (blocks of 1 KiB).
fn size(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &word[digits.len()..] {
        "" | "K" | "Ki" => 1 << 10,
        "M" | "Mi" => 1 << 20,
        "G" | "Gi" => 1 << 30,
        "T" | "Ti" => 1 << 40,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    (0.0..1e15).contains(&number).then_some(if word == "0" { 0 } else { (number * unit as f64) as u64 })
}

/// `shm  64M  0  64M  0%  /dev/shm`
fn shm(scene: &mut Scene<'_>) -> bool {
    // With -T the kind of file system stands behind its name.
    let ([_, total, _, free, percent, "/dev/shm"] | [_, "tmpfs" | "shm", total, _, free, percent, "/dev/shm"]) = scene.words.as_slice() else { return false };
    let (Some(size), Some(free)) = (size(total), size(free)) else { return false };
    if !percent.ends_with('%') {
        return false;
    }
    scene.host.shm = Some(Fact::new(Shm { size, free }, scene.at));
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::one;
    use super::*;

    #[test]
    fn limits_of_shells_and_processes() {
        for (text, want) in [
            ("max locked memory           (kbytes, -l) 65536\n", Limit::Value(64 << 20)),
            ("max locked memory       (kbytes, -l) unlimited\n", Limit::Unlimited),
            ("Max locked memory         8388608              8388608              bytes     \n", Limit::Value(8 << 20)),
            ("$ ulimit -l\n64\n", Limit::Value(64 << 10)),
            ("MEMLOCK    max locked-in-memory address space     65536     65536 bytes\n", Limit::Value(64 << 10)),
            ("MEMLOCK    max locked-in-memory address space unlimited unlimited bytes\n", Limit::Unlimited),
            ("locked memory(kbytes)        8192\n", Limit::Value(8 << 20)),
            ("-l: locked-in-memory size (kbytes)  unlimited\n", Limit::Unlimited),
        ] {
            assert_eq!(one(text).memlock.map(|m| m.value), Some(want), "{text}");
        }
        assert_eq!(one("open files                          (-n) 1024\n").nofile.map(|m| m.value), Some(Limit::Value(1024)));
        assert_eq!(one("nofiles              20000\n").nofile.map(|m| m.value), Some(Limit::Value(20_000)));
        assert_eq!(one("Max open files            1048576              1048576              files     \n").nofile.map(|m| m.value), Some(Limit::Value(1_048_576)));
    }

    #[test]
    fn shared_memory() {
        for (text, want) in [
            ("shm              64M     0   64M   0% /dev/shm\n", (64 << 20, 64 << 20)),
            ("tmpfs          16384000 16384000 0 100% /dev/shm\n", (16_384_000 << 10, 0)),
            ("none 1.5G 1.0G 512M 67% /dev/shm\n", (3 << 29, 512 << 20)),
            ("tmpfs          tmpfs   16G     0   16G   0% /dev/shm\n", (16 << 30, 16 << 30)),
        ] {
            let shm = one(text).shm.expect("shm").value;
            assert_eq!((shm.size, shm.free), want, "{text}");
        }
    }
}
