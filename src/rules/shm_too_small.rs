//! shm-too-small: /dev/shm is too small for the shared memory segments of the ranks of one host.

use super::facts;
use super::finding::{Confidence, Finding, Fix, Severity};
use super::query::{Ask, Hit, ranks_of, ranks_text};
use super::remedy::{fix, lines, prove};
use super::{Cause, Rule, teardown};
use crate::digest::{Fact, Shm};
use std::collections::BTreeSet;
use std::fmt::Write;

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
        return by_exit_code(ask).into_iter().collect();
    }
    let said = hits.iter().any(|h| no_space(h));
    let room = room(ask, &hits, &bus);
    let wanted = hits.iter().filter_map(|h| h.num("size")).max().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    // What a container gets by default holds no job of several ranks; a roomy one is rarely what ran out.
    let small = room.is_some_and(|r| r.value.size <= 64 << 20 || r.value.free < wanted);
    let ample = room.is_some_and(|r| r.value.free > wanted.max(1 << 30));
    let confidence = match (said, small, ample) {
        (true, ..) | (_, true, _) => Confidence::Certain,
        (false, false, true) => Confidence::Possible,
        (false, false, false) => Confidence::Likely,
    };
    let proof: Vec<Hit<'_>> = hits.iter().copied().filter(no_space).chain(hits.iter().copied().filter(|h| !no_space(h))).chain(bus.iter().copied()).collect();
    let who = ranks_text(&ranks_of(&proof));
    let size = hits.iter().filter_map(|h| h.num("size")).max().map_or(String::new(), |n| format!(" of {} MiB", (n + 1_048_575) / 1_048_576));
    let title =
        if hits.is_empty() { "A data loader ran out of room in /dev/shm".to_owned() } else { format!("/dev/shm is full: {who} could not get a shared memory segment{size}") };
    let mut finding = Finding::new(ID, Severity::Error, confidence, title);
    prove(&mut finding, &proof);
    finding.evidence.extend(room.map(|r| facts::evidence(ask, &r.at)));
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
    if let Some(room) = room {
        let mib = |bytes: u64| bytes >> 20;
        let _ = write!(finding.why, " By the host's facts it has {} MiB, of which {} MiB are free.", mib(room.value.size), mib(room.value.free));
    }
    finding.fixes = fixes();
    finding.avoid = lines(&["NCCL_SHM_DISABLE=1: local traffic then goes over the network, which is slow.", "A smaller NCCL_BUFFSIZE: it only moves the limit."]);
    finding.verify = lines(&["df -h /dev/shm   # inside the container"]);
    vec![finding]
}

/// A launcher's word that a process ended with SIGBUS, and nothing else: mostly a full /dev/shm, of a container.
fn by_exit_code(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.any_of(&["app.exit", "app.exit_signal"]).into_iter().filter(|h| h.signal() == Some(7)).collect();
    if hits.is_empty() || teardown::origin(ask).is_some() {
        return None;
    }
    let mut finding = Finding::new(ID, Severity::Error, Confidence::Possible, "A process ended with a bus error (SIGBUS): look at the room in /dev/shm first".to_owned());
    prove(&mut finding, &hits);
    finding.why = "The launcher says that a process was ended by signal 7. That is what happens when it touches shared memory that has no room behind it, and containers get 64 MiB of /dev/shm by default, too little for NCCL and for data loaders. A file that was mapped and then cut short, or a full disk below it, is the alternative.".to_owned();
    finding.fixes = fixes();
    finding.verify = lines(&["df -h /dev/shm   # inside the container"]);
    Some(finding)
}

fn fixes() -> Vec<Fix> {
    vec![
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
    ]
}

/// What the facts of the failing hosts say of /dev/shm; the smallest.
fn room<'a>(ask: Ask<'a>, hits: &[Hit<'_>], bus: &[Hit<'_>]) -> Option<&'a Fact<Shm>> {
    let hosts: BTreeSet<Option<usize>> = hits.iter().chain(bus).map(|h| h.process().host_index).collect();
    facts::nodes(ask).filter(|n| n.host.is_none() || hosts.contains(&n.host)).filter_map(|n| n.facts.shm.as_ref()).min_by_key(|s| s.value.free)
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
