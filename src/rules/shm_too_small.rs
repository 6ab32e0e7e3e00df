//! shm-too-small: /dev/shm is too small for the shared memory segments of the ranks of one host.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule};

const ID: &str = "shm-too-small";

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: ID, aliases: &[], summary: "/dev/shm is too small for the shared memory segments of the ranks of one host.", explanation: include_str!("shm_too_small.md") },
    check,
    explains: &["collective-timeout", "peer-crash", "missing-rank", "bootstrap-unreachable", "app-crash", "stall"],
    only_alone: false,
};

/// A WARN in words that no row knows, about shared memory and a full device.
fn foreign(ask: Ask<'_>) -> impl Iterator<Item = Hit<'_>> {
    ask.any_of(&["warn.unknown", "system.call_failed"]).into_iter().filter(|h| {
        let place = h.entry.first.file.contains("shm") || ["/dev/shm", "shared memory", "shm"].iter().any(|w| h.text().contains(w));
        place && h.text().contains("No space left on device")
    })
}

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("shm.error").into_iter().filter(about_room).chain(foreign(ask)).collect();
    let bus = ask.hits("app.bus_error");
    let loader = bus.iter().any(|h| h.text().contains("insufficient shared memory") || h.text().contains("DataLoader"));
    if hits.is_empty() && !loader {
        return Vec::new();
    }
    let said = hits.iter().any(|h| no_space(h));
    let confidence = if said { Confidence::Certain } else { Confidence::Likely };
    let proof: Vec<Hit<'_>> = hits.iter().copied().filter(no_space).chain(hits.iter().copied().filter(|h| !no_space(h))).chain(bus.iter().copied()).collect();
    let who = ranks_text(&ranks_of(&proof));
    let size = hits.iter().filter_map(|h| h.num("size")).max().map_or(String::new(), |n| format!(" of {} MiB", (n + 1_048_575) / 1_048_576));
    let title =
        if hits.is_empty() { "A data loader ran out of room in /dev/shm".to_owned() } else { format!("/dev/shm is full: {who} could not get a shared memory segment{size}") };
    let mut finding = Finding::new(ID, Severity::Error, confidence, title);
    prove(&mut finding, &proof);
    let why = if said {
        "The system says that no space is left on /dev/shm."
    } else if hits.is_empty() {
        "A process touched shared memory that has no room behind it (bus error)."
    } else {
        "This version does not print the reason, but growing the segment failed, which a full /dev/shm does; a wrong owner of an old segment is the rare alternative."
    };
    finding.why = format!(
        "{why} NCCL needs some MiB there for every pair of local ranks that goes through shared memory, and containers get 64 MiB by default. Errors of other ranks, and closed connections, follow from it."
    );
    finding.fixes = vec![
        fix(
            "Give the container more shared memory",
            "Docker or Podman.",
            &["docker run --shm-size=16g …", "# or share the host's: docker run --ipc=host …"],
            "nothing",
            "memory is used only as far as it is filled",
            "start it without the option",
        ),
        fix(
            "Mount a memory volume on /dev/shm",
            "Kubernetes.",
            &["# volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]", "# volumeMounts: [{name: shm, mountPath: /dev/shm}]"],
            "nothing",
            "counts against the pod's memory limit",
            "remove the volume",
        ),
        fix(
            "Enlarge it on the host, or clear what crashed jobs left there",
            "No container.",
            &["ls -l /dev/shm", "sudo mount -o remount,size=50% /dev/shm"],
            "root",
            "none",
            "remount with the former size",
        ),
    ];
    finding.avoid = lines(&["NCCL_SHM_DISABLE=1: local traffic then goes over the network, which is slow.", "A smaller NCCL_BUFFSIZE: it only moves the limit."]);
    finding.verify = lines(&["df -h /dev/shm   # inside the container"]);
    vec![finding]
}

fn no_space(hit: &Hit<'_>) -> bool {
    hit.text().contains("No space left") || hit.num("errno") == Some(28)
}

/// Segments without a name or with an absurd size come from two ranks whose settings differ; an open that fails for
/// lack of a right or a file has nothing to do with room.
fn about_room(hit: &Hit<'_>) -> bool {
    let nameless = hit.get("path").is_some_and(|p| p.ends_with("/nccl-") || p.is_empty()) || hit.text().contains("/dev/shm/nccl- ");
    let absurd = hit.num("size").is_some_and(|n| !(0..=1 << 40).contains(&n));
    let other = ["No such file", "Permission denied", "File exists", "Too many open files", "attaching"].iter().any(|t| hit.text().contains(t));
    let grown = ["creating", "allocat", "extend", "fallocate"].iter().any(|t| hit.text().contains(t));
    no_space(hit) || (!nameless && !absurd && !other && grown)
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::Finding;

    fn found(text: &str) -> Option<Finding> {
        analyze_texts(&[("rank0.log", text)]).findings.into_iter().find(|f| f.id == super::ID)
    }

    #[test]
    fn full_is_certain_and_the_old_wording_likely() {
        let f =
            found("h1:1:2 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-aB3dEf to 9637892 bytes, error: No space left on device (28)\n").expect("full");
        assert_eq!(f.confidence, super::Confidence::Certain);
        assert!(f.title.contains("10 MiB"), "{}", f.title);
        let f = found("h1:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-aB3dEf to 9637892 bytes\n").expect("old");
        assert_eq!(f.confidence, super::Confidence::Likely);
    }

    #[test]
    fn other_shared_memory_words_are_silent() {
        for text in [
            "h1:1:2 [0] misc/shmutils.cc:113 NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl- (size 0)\n",
            "INFO 01-01 10:00:00 shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n",
            "h1:1:2 [0] misc/shmutils.cc:72 NCCL WARN Call to shm_open failed : Permission denied\n",
        ] {
            assert!(found(text).is_none(), "{text}");
        }
    }
}
