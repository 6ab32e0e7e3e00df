//! Compares what torch's watchdogs say of one process group. Ranks run ahead of each other rightly, so a different
//! `last enqueued` alone is skew; the same number with another operation, or a rank with nothing outstanding, is not.

use super::super::finding::{Confidence, Finding, Severity};
use super::super::query::{Ask, Hit, hosts_of, ranks_text};
use std::collections::{BTreeMap, BTreeSet};

/// The difference, if the watchdogs show one.
pub fn compare(ask: Ask<'_>) -> Option<Finding> {
    fingerprints(ask).or_else(|| operations(ask)).or_else(|| alone(ask))
}

fn rank(hit: &Hit<'_>) -> Option<u32> {
    hit.num("pg_rank").or_else(|| hit.num("rank")).and_then(|r| u32::try_from(r).ok()).or_else(|| hit.rank())
}

/// `TORCH_DISTRIBUTED_DEBUG=DETAIL`: the same sequence number, another operation or shape.
fn fingerprints(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.hits("torch.fingerprint");
    let mut last: BTreeMap<(i64, u32), &Hit<'_>> = BTreeMap::new();
    for h in &hits {
        if let (Some(seq), Some(rank)) = (h.num("seq"), rank(h)) {
            last.insert((seq, rank), h);
        }
    }
    let numbers: BTreeSet<i64> = last.keys().map(|(s, _)| *s).collect();
    for seq in numbers {
        let row: Vec<(u32, &Hit<'_>)> = last.range((seq, 0)..=(seq, u32::MAX)).map(|((_, r), h)| (*r, *h)).collect();
        let kinds: BTreeSet<&str> = row.iter().filter_map(|(_, h)| h.get("op")).collect();
        if kinds.len() > 1 {
            return Some(differ(&row, seq, Confidence::Likely));
        }
    }
    None
}

/// Time-outs of the same number with another operation. The line does not name its group, so it only counts where one
/// group speaks.
fn operations(ask: Ask<'_>) -> Option<Finding> {
    let groups: BTreeSet<&str> = ask.hits("torch.watchdog_status").iter().filter_map(|h| h.get("pg")).map(|pg| pg.split(" GUID").next().unwrap_or(pg)).collect();
    if groups.len() > 1 || ask.comms().count() > 1 {
        return None;
    }
    let hits = ask.hits("torch.watchdog_timeout");
    let mut rows: BTreeMap<i64, BTreeMap<u32, &Hit<'_>>> = BTreeMap::new();
    for h in &hits {
        if let (Some(seq), Some(rank), Some(_)) = (h.num("seq"), rank(h), h.get("op")) {
            rows.entry(seq).or_default().entry(rank).or_insert(h);
        }
    }
    for (seq, row) in rows {
        // Element counts of gathers and scatters may differ rightly between ranks; operations may not.
        let kinds: BTreeSet<&str> = row.values().filter_map(|h| h.get("op")).collect();
        if kinds.len() > 1 {
            let row: Vec<(u32, &Hit<'_>)> = row.into_iter().collect();
            return Some(differ(&row, seq, if groups.len() == 1 { Confidence::Likely } else { Confidence::Possible }));
        }
    }
    None
}

fn differ(row: &[(u32, &Hit<'_>)], seq: i64, confidence: Confidence) -> Finding {
    let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (rank, hit) in row {
        groups.entry(hit.get("op").unwrap_or("?")).or_default().push(*rank);
    }
    let side: Vec<String> = groups.iter().map(|(op, ranks)| format!("{} in {op}", ranks_text(ranks))).collect();
    let mut f = Finding::new("collective-mismatch", Severity::Error, confidence, format!("Collective {seq} differs: {}", side.join(", ")));
    "torch numbers the collectives of a group, and under this number the ranks stand in different operations, so none of them can finish. Two groups that share the numbers would look alike where the lines do not name the group.".clone_into(&mut f.why);
    let smallest = groups.values().min_by_key(|l| l.len()).cloned().unwrap_or_default();
    let hits: Vec<Hit<'_>> = row.iter().map(|(_, h)| **h).collect();
    f.hosts = hosts_of(&hits);
    f.evidence = hits.iter().take(6).map(Hit::evidence).collect();
    f.ranks = smallest;
    f
}

/// One rank waits in a collective while all others of its group have nothing outstanding.
fn alone(ask: Ask<'_>) -> Option<Finding> {
    let hits = ask.any_of(&["torch.watchdog_status", "torch.dump_signal"]);
    let mut groups: BTreeMap<&str, BTreeMap<u32, &Hit<'_>>> = BTreeMap::new();
    for h in hits.iter().filter(|h| h.num("enqueued").is_some_and(|n| n > 0)) {
        if let Some(rank) = rank(h) {
            groups.entry(h.get("pg").unwrap_or("")).or_default().insert(rank, h);
        }
    }
    for rows in groups.values() {
        let (idle, waiting): (Vec<(&u32, &&Hit<'_>)>, Vec<_>) = rows.iter().partition(|(_, h)| h.num("enqueued") == h.num("completed"));
        let mut at: Vec<u32> = waiting.iter().map(|(r, _)| **r).collect();
        at.extend(hits.iter().filter_map(|h| h.num("from")).filter_map(|r| u32::try_from(r).ok()).filter(|r| !rows.contains_key(r)));
        at.sort_unstable();
        at.dedup();
        let numbers: BTreeSet<i64> = idle.iter().filter_map(|(_, h)| h.num("enqueued")).collect();
        if idle.len() < 2 || at.len() != 1 || numbers.len() != 1 {
            continue;
        }
        let ranks: Vec<u32> = idle.iter().map(|(r, _)| **r).collect();
        let mut f =
            Finding::new("collective-mismatch", Severity::Error, Confidence::Likely, format!("{} waits in a collective that {} never called", ranks_text(&at), ranks_text(&ranks)));
        f.why = format!(
            "The time-out comes from {}, while {} had completed all they had enqueued: {} is in a collective that the others did not issue. That they were merely late, held up elsewhere in the program, is the alternative. A launcher's 'first observed failure' only names who exited first.",
            ranks_text(&at),
            ranks_text(&ranks),
            ranks_text(&at)
        );
        let hits: Vec<Hit<'_>> = idle.iter().chain(&waiting).map(|(_, h)| ***h).collect();
        f.hosts = hosts_of(&hits);
        f.evidence = hits.iter().take(6).map(Hit::evidence).collect();
        f.ranks = at;
        return Some(f);
    }
    None
}
