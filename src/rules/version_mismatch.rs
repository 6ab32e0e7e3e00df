//! version-mismatch: Ranks run different NCCL or RCCL versions.

use super::finding::{Confidence, Finding, Fix, Severity};
use super::network::{self, names_text};
use super::query::{Ask, Hit, capital, hosts_of, number, ranks_of, ranks_text};
use super::{Cause, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub const RULE: Rule = Rule {
    cause: Cause { id: "version-mismatch", aliases: &[], summary: "Ranks run different NCCL or RCCL versions.", explanation: include_str!("version_mismatch.md") },
    check,
    explains: &["launch-misconfig", "app-crash", "bootstrap-unreachable", "peer-crash", "missing-rank", "collective-timeout", "stall", "env-mismatch"],
    only_alone: false,
};

type Version = (u32, u32, u32);

fn check(ask: Ask<'_>) -> Vec<Finding> {
    let found = printed(ask).or_else(|| different(ask)).or_else(|| truncated(ask)).or_else(|| symbol(ask)).or_else(|| wording(ask)).or_else(|| address(ask));
    found
        .map(|mut f| {
            f.fixes = fixes();
            f.verify = vec![
                "Every rank's log shows the same `NCCL version` line.".to_owned(),
                "python -c 'import torch; print(torch.cuda.nccl.version())'   # on every node, in the job's own environment".to_owned(),
            ];
            f.avoid = vec!["Longer time-outs: two versions never agree.".to_owned()];
            f
        })
        .into_iter()
        .collect()
}

fn text(v: Version) -> String {
    format!("{}.{}.{}", v.0, v.1, v.2)
}

/// 22707 → 2.27.7, 2708 → 2.7.8.
fn decode(code: i64) -> Option<Version> {
    let code = u32::try_from(code).ok()?;
    Some(if code >= 10_000 { (code / 10_000, code / 100 % 100, code % 100) } else { (code / 1000, code / 100 % 10, code % 100) })
}

/// The library itself says so.
fn printed(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("version.mismatch");
    let Some(first) = hits.first() else { return too_old(ask) };
    let pair: BTreeSet<String> = [first.num("got"), first.num("want")].into_iter().flatten().filter_map(decode).map(text).collect();
    let pair: Vec<String> = pair.into_iter().collect();
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, format!("Ranks run different versions: {}", pair.join(" and ")));
    f.why = "The library compares the versions of all ranks when they meet and refuses to go on with different ones.".to_owned();
    f.ranks = ranks_of(&hits);
    f.ranks.extend(hits.iter().flat_map(|h| [h.num("rank"), h.num("peer_rank")]).flatten().filter_map(|r| u32::try_from(r).ok()));
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    Some(f)
}

fn too_old(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("version.too_old");
    let first = hits.first()?;
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, "The program and the loaded library are of different versions");
    f.why = format!("The program was built for another NCCL than the one that the loader found: {}", first.text().chars().take(200).collect::<String>());
    f.ranks = ranks_of(&hits);
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(3).map(Hit::evidence).collect();
    Some(f)
}

/// Processes by the version that they print.
fn by_version(ask: Ask<'_>) -> BTreeMap<Version, BTreeSet<usize>> {
    let mut map: BTreeMap<Version, BTreeSet<usize>> = BTreeMap::new();
    for (i, p) in ask.procs() {
        for v in p.log.versions.iter().filter_map(|(_, v)| number(v)) {
            map.entry(v).or_default().insert(i);
        }
    }
    map
}

/// Different version lines in one job.
fn different(ask: Ask<'_>) -> Option<Finding> {
    let map = by_version(ask);
    if map.len() < 2 {
        return None;
    }
    // One process that holds two versions is a report about both, not a job.
    let mut seen = BTreeSet::new();
    if map.values().flatten().any(|p| !seen.insert(*p)) {
        return None;
    }
    let complete = |p: &usize| ask.job.procs[*p].log.comms.iter().any(|c| c.complete.is_some());
    let truncated = foreign_size(ask);
    let shared = ask.comms().any(|c| map.values().filter(|procs| c.members.iter().any(|m| procs.contains(&m.proc))).count() > 1);
    let done = map.values().flatten().any(complete);
    let (severity, confidence) = match (truncated.is_some(), done, shared) {
        (true, ..) => (Severity::Error, Confidence::Certain),
        (_, false, _) => (Severity::Error, Confidence::Likely),
        (_, true, true) => (Severity::Warning, Confidence::Likely),
        // Separate jobs in one set of logs.
        (_, true, false) => return None,
    };
    let parts: Vec<String> = map.iter().map(|(v, procs)| format!("{} on {}", text(*v), who(ask, procs))).collect();
    let mut f = Finding::new(RULE.cause.id, severity, confidence, format!("Different versions in one job: {}", names_text(&parts.iter().map(String::as_str).collect::<Vec<_>>())));
    let tail = if truncated.is_some() {
        "The ranks' first messages to each other have different sizes, as those of different versions have."
    } else if done {
        "The job went on all the same, but nothing promises that this works."
    } else {
        "No rank finished its initialisation; before 2.23.4 nothing compares the versions, and such jobs hang or stop with odd messages."
    };
    f.why = format!("All ranks of a job must load the same library. {tail}");
    let procs: BTreeSet<usize> = map.values().flatten().copied().collect();
    f.ranks = procs.iter().filter_map(|p| ask.job.procs[*p].rank).collect();
    f.hosts = network::hosts_of(ask, &procs);
    f.evidence = truncated.iter().map(Hit::evidence).collect();
    for procs in map.values() {
        f.evidence.extend(network::hits_of(ask, "init.version", procs).first().map(Hit::evidence));
    }
    f.evidence.truncate(6);
    Some(f)
}

fn who(ask: Ask<'_>, procs: &BTreeSet<usize>) -> String {
    let ranks: Vec<u32> = procs.iter().filter_map(|p| ask.job.procs[*p].rank).collect();
    if !ranks.is_empty() {
        return ranks_text(&ranks);
    }
    let hosts = network::hosts_of(ask, procs);
    if hosts.is_empty() { "a process".to_owned() } else { names_text(&hosts.iter().map(String::as_str).collect::<Vec<_>>()) }
}

/// A bootstrap message whose size no setting explains. Sizes that are multiples of a connection's 256 bytes come
/// from different channel counts.
fn foreign_size(ask: Ask<'_>) -> Option<Hit<'_>> {
    ask.hits("bootstrap.truncated").into_iter().find(|h| {
        let (Some(got), Some(want)) = (h.num("got"), h.num("want")) else { return false };
        !(got > 0 && want > 0 && got % 256 == 0 && want % 256 == 0)
    })
}

/// A message of the wrong size and no version line to compare.
fn truncated(ask: Ask<'_>) -> Option<Finding> {
    let hit = foreign_size(ask)?;
    let (got, want) = (hit.num("got")?, hit.num("want")?);
    let known = matches!((got, want), (172, 64) | (64, 172));
    let confidence = if known { Confidence::Likely } else { Confidence::Possible };
    let who = hit.rank().map_or_else(|| "A rank".to_owned(), |r| format!("Rank {r}"));
    let mut f = Finding::new(RULE.cause.id, Severity::Error, confidence, format!("{who} got a bootstrap message of {got} bytes instead of {want}"));
    f.why = if known {
        "These are the sizes of the first message before and since 2.23: two versions of the library met. Only one side prints it; the other waits.".to_owned()
    } else {
        "The sender speaks another version of the library, or it is no rank of this job at all (another job on the same port, a port scanner). Compare the version lines of all ranks.".to_owned()
    };
    f.ranks = hit.rank().into_iter().collect();
    f.hosts = hosts_of(&[hit]);
    f.evidence = vec![hit.evidence()];
    Some(f)
}

/// A framework's library asks for a symbol that the loaded libnccl lacks.
fn symbol(ask: Ask<'_>) -> Option<Finding> {
    let hits: Vec<Hit<'_>> = ask.hits("app.undefined_symbol").into_iter().filter(|h| h.get("symbol").is_some_and(|s| s.starts_with("nccl") || s.starts_with("pnccl"))).collect();
    let name = hits.first()?.get("symbol")?;
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Certain, format!("The loaded libnccl lacks {name}: another version than the program was built for"));
    f.why = format!(
        "The loader found an older libnccl.so.2 than the one that the framework was built with, so {name} is missing. Mostly two NCCL packages are installed side by side, or LD_LIBRARY_PATH puts a system library first."
    );
    f.ranks = ranks_of(&hits);
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(3).map(Hit::evidence).collect();
    Some(f)
}

/// Wordings that only some versions print: (kind, text, first version, last version).
const WORDINGS: &[(&str, &str, Version, Version)] = &[
    ("bootstrap.using", "Bootstrap : Using", (2, 5, 6), (2, 23, 4)),
    ("bootstrap.using", "Bootstrap: Using", (2, 24, 3), (99, 0, 0)),
    // 2.17 and 2.18 go on with a comma.
    ("plugin.none", "NET/Plugin : No plugin found (", (2, 11, 4), (2, 16, 5)),
    ("plugin.none", "NET/Plugin : dlerror=", (2, 19, 1), (2, 20, 5)),
    ("plugin.none", "NET/Plugin: Could not find", (2, 22, 3), (99, 0, 0)),
    ("plugin.load_failed", "NET/Plugin : Plugin load (", (2, 17, 1), (2, 18, 6)),
    ("net.plugin_assigned", "Assigned NET plugin", (2, 27, 3), (99, 0, 0)),
];

/// Two hosts whose own lines cannot come from one version.
fn wording(ask: Ask<'_>) -> Option<Finding> {
    if ask.procs().any(|(_, p)| p.log.rccl || p.log.comms.iter().any(|c| c.complete.is_some())) || by_version(ask).len() > 1 || ask.versions().len() > 1 {
        return None;
    }
    let mut bounds: BTreeMap<&str, (Version, Version, Hit<'_>)> = BTreeMap::new();
    for (kind, words, since, until) in WORDINGS {
        for hit in ask.hits(kind).into_iter().filter(|h| h.text().contains(words) && !h.host().is_empty()) {
            let b = bounds.entry(network::host_of(ask, hit.proc)).or_insert((*since, *until, hit));
            if *since > b.0 {
                (b.0, b.2) = (*since, hit);
            }
            if *until < b.1 {
                (b.1, b.2) = (*until, hit);
            }
        }
    }
    // A host whose own lines fit no version holds logs of several; it says nothing about the job.
    bounds.retain(|_, b| b.0 <= b.1);
    let (old_host, old) = bounds.iter().min_by_key(|(_, b)| b.1)?;
    let (new_host, new) = bounds.iter().max_by_key(|(_, b)| b.0)?;
    // A log that has run into no trouble shows no mismatch.
    let trouble = ask.any_of(&["socket.closed", "socket.error", "socket.wrong_type", "socket.wrong_magic", "bootstrap.truncated", "bootstrap.family"]);
    if old.1 >= new.0 || trouble.is_empty() {
        return None;
    }
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Possible, format!("{old_host} and {new_host} print lines of different versions"));
    f.why = format!(
        "{old_host} words its lines as versions up to {} do, {new_host} as versions from {} on. No version line of both is in the log to prove it.",
        text(old.1),
        text(new.0)
    );
    f.hosts = vec![(*old_host).to_owned(), (*new_host).to_owned()];
    f.evidence = vec![old.2.evidence(), new.2.evidence()];
    Some(f)
}

/// The address of a peer came out empty or as garbage before the ranks had met: the structure that carries it has
/// another layout at the other end. An interface filter that matches nothing does the same in old versions.
fn address(ask: Ask<'_>) -> Option<Finding> {
    if !ask.settings("NCCL_SOCKET_IFNAME").is_empty() {
        return None;
    }
    let hits: Vec<Hit<'_>> = ask.hits("bootstrap.family").into_iter().filter(|h| !network::bootstrapped(ask, h.proc)).collect();
    let family = hits.first()?.num("family")?;
    let title = format!("{} got an address of family {family} in the bootstrap: another version at the other end?", capital(&ranks_text(&ranks_of(&hits))));
    let mut f = Finding::new(RULE.cause.id, Severity::Error, Confidence::Possible, title);
    f.why = format!(
        "The ranks exchange the addresses at which they listen, and the one that came in is none (family {family}). Versions before 2.23.4 do not compare themselves with each other; where two of them meet, the messages have other layouts and the address is read from the wrong place. A rank whose NCCL_SOCKET_IFNAME matches no interface sends an empty address, too. The version lines of all ranks decide."
    );
    f.ranks = ranks_of(&hits);
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(4).map(Hit::evidence).collect();
    Some(f)
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Use one image or environment on all nodes".to_owned(),
            when: "Nodes run different images, wheels or modules.".to_owned(),
            commands: vec!["pip list 2>/dev/null | grep -i nccl; ldconfig -p | grep -E 'libnccl|librccl'   # on every node".to_owned()],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
        Fix {
            title: "Keep one copy of the library in each environment".to_owned(),
            when: "Two packages, or LD_LIBRARY_PATH or LD_PRELOAD, bring a second libnccl.so.2.".to_owned(),
            commands: vec![
                "LD_DEBUG=libs python -c 'import torch' 2>&1 | grep -E 'init.*libn?r?ccl'   # which file is loaded".to_owned(),
                "echo $LD_LIBRARY_PATH $LD_PRELOAD".to_owned(),
            ],
            needs: "nothing".to_owned(),
            ..Fix::default()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_texts;

    fn find(texts: &[(&str, &str)]) -> Option<Finding> {
        analyze_texts(texts).findings.into_iter().find(|f| f.id == "version-mismatch")
    }

    #[test]
    fn the_library_says_it() {
        let f = find(&[("a.log", "alpha:1:1 [0] init.cc:729 NCCL WARN Mismatched NCCL version detected : rank 1 version 22809 rank 0 version 22707\n")]).unwrap();
        assert_eq!(f.confidence, Confidence::Certain);
        assert_eq!(f.title, "Ranks run different versions: 2.27.7 and 2.28.9");
        assert_eq!(decode(2708), Some((2, 7, 8)));
    }

    #[test]
    fn a_first_message_of_another_version() {
        let a = "NCCL version 2.21.5+cuda12.4\nalpha:1:2 [0] bootstrap.cc:77 NCCL WARN Message truncated : received 172 bytes instead of 64\n";
        let b = "beta:4:4 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\n";
        assert_eq!(find(&[("rank0.log", a), ("rank1.log", b)]).unwrap().confidence, Confidence::Certain);
        assert_eq!(find(&[("rank0.log", a)]).unwrap().confidence, Confidence::Likely);
    }

    #[test]
    fn channel_counts_are_no_version() {
        assert!(find(&[("rank0.log", "alpha:1:2 [0] bootstrap.cc:77 NCCL WARN Message truncated : received 2048 bytes instead of 512\n")]).is_none());
    }

    #[test]
    fn other_cuda_builds_of_one_version_are_fine() {
        let v = |host: &str, cuda: &str| format!("{host}:4:4 [0] NCCL INFO NCCL version 2.25.1+cuda{cuda}\n");
        assert!(find(&[("a.log", &v("alpha", "12.1")), ("b.log", &v("beta", "12.4"))]).is_none());
    }

    #[test]
    fn the_wording_of_2_18_fits_one_version() {
        let host = |h: &str| {
            format!(
                "{h}:4:4 [0] NCCL INFO Bootstrap : Using eth0:192.0.2.4<0>\n{h}:4:4 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory\n{h}:4:4 [0] NCCL INFO NET/Plugin : No plugin found, using internal implementation\n{h}:4:5 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer 192.0.2.5<7>\n"
            )
        };
        assert!(find(&[("a.log", &host("alpha")), ("b.log", &host("beta"))]).is_none());
        let old = "gamma:4:4 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation\n";
        assert!(find(&[("a.log", &host("alpha")), ("c.log", old)]).is_some());
    }

    #[test]
    fn an_address_that_is_none_in_the_bootstrap() {
        let line = "alpha:1:2 [0] misc/socket.cc:713 NCCL WARN ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)\n";
        let f = find(&[("a.log", line)]).unwrap();
        assert_eq!(f.confidence, Confidence::Possible);
        // Behind the bootstrap it is a list of channels of another length.
        let met = "alpha:1:2 [0] NCCL INFO comm 0x10 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n";
        assert!(find(&[("a.log", &format!("NCCL version 2.21.5+cuda12.4\n{met}{line}"))]).is_none());
        let filter = "alpha:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth7\n";
        assert!(find(&[("a.log", &format!("{filter}{line}"))]).is_none());
    }

    #[test]
    fn a_missing_symbol_of_nccl() {
        let log = "ImportError: /opt/env/lib/libtorch_cuda.so: undefined symbol: ncclMemAlloc\n";
        assert_eq!(find(&[("job.log", log)]).unwrap().confidence, Confidence::Certain);
        assert!(find(&[("job.log", "ImportError: /opt/env/lib/libfoo.so: undefined symbol: fooBar\n")]).is_none());
    }
}
