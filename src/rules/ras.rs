//! What `ncclras` says, for the rules of missing, dead and differing ranks.

use super::finding::{Confidence, Finding, Severity};
use super::query::{Ask, Hit, capital, ranks_text};
use std::collections::BTreeSet;

/// Rows under a heading of the report.
fn under<'a>(ask: Ask<'a>, section: &str) -> Vec<Hit<'a>> {
    ask.any_of(&["ras.rank", "ras.process"]).into_iter().filter(|h| h.get("section") == Some(section)).collect()
}

/// Ranks that a report lists, the processes' own ranks included.
fn ranks(ask: Ask<'_>, rows: &[Hit<'_>]) -> Vec<u32> {
    let number = |h: &Hit<'_>| h.num("rank").and_then(|r| u32::try_from(r).ok());
    let mut list: BTreeSet<u32> = rows.iter().filter_map(number).collect();
    // A process is listed without its rank; the communicators' rows name both.
    let known = ask.hits("ras.rank");
    for row in rows.iter().filter(|h| h.entry.kind == "ras.process") {
        list.extend(known.iter().filter(|k| k.get("pid") == row.get("pid") && k.get("host") == row.get("host")).filter_map(number));
    }
    list.into_iter().collect()
}

fn hosts(rows: &[Hit<'_>]) -> Vec<String> {
    rows.iter().filter_map(|h| h.get("host")).collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect()
}

/// `Rank 5 (process 4711 on node2)`
fn who(ask: Ask<'_>, rows: &[Hit<'_>]) -> String {
    let ranks = ranks(ask, rows);
    let processes: BTreeSet<(&str, &str)> = rows.iter().filter_map(|h| Some((h.get("pid")?, h.get("host")?))).collect();
    let place = match processes.iter().next() {
        Some((pid, host)) if processes.len() == 1 => format!("process {pid} on {host}"),
        _ => String::new(),
    };
    match (ranks.is_empty(), place.is_empty()) {
        (false, false) => format!("{} ({place})", capital(&ranks_text(&ranks))),
        (false, true) => capital(&ranks_text(&ranks)),
        (true, false) => capital(&place),
        (true, true) => format!("{} processes", rows.len()),
    }
}

fn write(ask: Ask<'_>, mut finding: Finding, rows: &[Hit<'_>], why: &str) -> Finding {
    finding.why = why.to_owned();
    finding.ranks = ranks(ask, rows);
    finding.hosts = hosts(rows);
    finding.evidence = rows.iter().take(6).map(Hit::evidence).collect();
    finding
}

/// Processes that RAS considers dead.
pub fn dead(ask: Ask<'_>) -> Option<Finding> {
    let rows = under(ask, "dead");
    rows.first()?;
    let title = format!("{}: RAS considers it dead; no connection to it is left", who(ask, &rows));
    let finding = Finding::new("peer-crash", Severity::Error, Confidence::Likely, title);
    Some(write(
        ask,
        finding,
        &rows,
        "RAS keeps its own connections between all processes of the job, and none reaches this one any more. Its service thread answers even while a collective hangs, so the process has ended or its node is cut off. Ranks that wait for it are consequences. What ended it must be read in its own log or in the node's kernel log.",
    ))
}

/// Ranks of which RAS has no data, where none is dead.
pub fn missing(ask: Ask<'_>) -> Option<Finding> {
    let rows = under(ask, "missing");
    if rows.is_empty() || !under(ask, "dead").is_empty() {
        return None;
    }
    let finding = Finding::new("missing-rank", Severity::Error, Confidence::Likely, format!("{} did not answer RAS", who(ask, &rows)));
    Some(write(
        ask,
        finding,
        &rows,
        "The others answered and know of it. Its process has ended, hangs outside of NCCL or is cut off; that it was still creating its communicator when RAS asked is the alternative, which a second `ncclras` decides.",
    ))
}

/// Ranks that have launched another number of operations, where none is dead or missing.
pub fn behind(ask: Ask<'_>) -> Option<Finding> {
    let rows = ask.hits("ras.rank_at");
    let first = rows.first()?;
    if !under(ask, "dead").is_empty() || !under(ask, "missing").is_empty() {
        return None;
    }
    let (function, n, most) = (first.get("function").unwrap_or("collective"), first.get("n")?, first.get("most").unwrap_or("another"));
    let who = capital(&ranks_text(&ranks(ask, &rows)));
    let title = format!("{who} launched {function} up to operation {n}, most ranks up to {most}");
    let finding = Finding::new("collective-mismatch", Severity::Warning, Confidence::Possible, title);
    Some(write(
        ask,
        finding,
        &rows,
        "RAS counts the operations that each rank has launched on this communicator, and they differ. In a job that runs this is a moment's skew. Run `ncclras` again after some seconds: if the numbers are the same, the rank with fewer never issued what the others wait for.",
    ))
}

#[cfg(test)]
mod tests {
    use crate::analysis::analyze_texts;
    use crate::rules::{Confidence, Severity};

    const HEAD: &str = "NCCL version 2.27.7 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12090\n\nJob summary\n===========\n\nErrors\n======\n\n";

    #[test]
    fn a_dead_process_is_named_with_its_rank() {
        let text = format!(
            "{HEAD}DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 4711 on node gpu-b managing GPU 3\n\n#0-0 (00ab12cd34ef5678) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 11 -- GPU 3 managed by process 4711 on node gpu-b\n\nWarnings\n========\n\n"
        );
        let a = analyze_texts(&[("ras.txt", &text)]);
        let f = a.findings.first().unwrap();
        assert_eq!((f.id, f.ranks.as_slice(), f.hosts.join(",").as_str()), ("peer-crash", &[11][..], "gpu-b"));
        assert!(f.title.contains("process 4711 on gpu-b"), "{}", f.title);
        assert_eq!(a.findings.iter().filter(|f| f.is_root()).count(), 1);
    }

    #[test]
    fn a_silent_rank_is_missing_and_a_behind_one_only_a_question() {
        let text = format!("{HEAD}#0-0 (00ab12cd34ef5678) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 5 -- GPU 1 managed by process 77 on node gpu-a\n\n");
        let a = analyze_texts(&[("ras.txt", &text)]);
        assert_eq!((a.findings[0].id, a.findings[0].ranks.as_slice()), ("missing-rank", &[5][..]));
        let text = format!(
            "{HEAD}Warnings\n========\n\n#0-0 (00ab12cd34ef5678) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  7 ranks have launched up to operation 42\n  Rank 3 has launched up to operation 41 -- GPU 3 managed by process 78 on node gpu-a\n\n"
        );
        let a = analyze_texts(&[("ras.txt", &text)]);
        let f = &a.findings[0];
        assert_eq!((f.id, f.severity, f.confidence, f.ranks.as_slice()), ("collective-mismatch", Severity::Warning, Confidence::Possible, &[3][..]));
        assert!(f.title.contains("AllReduce up to operation 41") && f.title.contains("42"), "{}", f.title);
        assert!(analyze_texts(&[("ras.txt", HEAD)]).findings.is_empty());
    }

    /// A rank's object of the JSON report.
    fn rank(rank: u32, all_reduce: u64) -> String {
        format!(
            "        {{\n          \"rank\": {rank},\n          \"host\": \"gpu-a\",\n          \"pid\": {},\n          \"status\": {{\n            \"init_state\": 0\n          }},\n          \"collective_counts\": {{\n            \"Broadcast\": 0,\n            \"AllReduce\": {all_reduce}\n          }}\n        }}",
            100 + rank
        )
    }

    fn report(ranks: &[String], missing: &str) -> String {
        format!(
            "{{\n  \"nccl_version\": \"2.29.7\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n    {{\n      \"hash\": \"0xab12\",\n      \"size\": 4,\n      \"ranks\": [\n{}\n      ],\n      \"missing_ranks\": [\n{missing}\n      ]\n    }}\n  ],\n  \"ras\": {{\n    \"collection_time_sec\": 0.004,\n    \"timeouts_count\": 0\n  }}\n}}\n",
            ranks.join(",\n")
        )
    }

    #[test]
    fn the_json_report_says_the_same() {
        let counts = [rank(0, 9), rank(1, 9), rank(2, 8), rank(3, 9)];
        let a = analyze_texts(&[("ras.json", &report(&counts, ""))]);
        assert_eq!((a.findings[0].id, a.findings[0].ranks.as_slice()), ("collective-mismatch", &[2][..]));
        let gone = "        {\n          \"rank\": 3,\n          \"host\": \"gpu-b\",\n          \"pid\": 900,\n          \"cuda_dev\": 0,\n          \"status\": {\n            \"unresponsive\": true,\n            \"considered_dead\": true\n          }\n        }";
        let a = analyze_texts(&[("ras.json", &report(&counts[..3], gone))]);
        assert_eq!((a.findings[0].id, a.findings[0].ranks.as_slice()), ("peer-crash", &[3][..]));
        // `jq -c` puts all on one line, and a log driver may wrap that.
        let compact = |text: &str| text.lines().map(str::trim_start).collect::<String>().replace("\": ", "\":");
        for (text, id, ranks) in [(report(&counts, ""), "collective-mismatch", [2]), (report(&counts[..3], gone), "peer-crash", [3])] {
            let line = compact(&text);
            assert_eq!(line.lines().count(), 1);
            let docker = format!("{{\"log\":{},\"stream\":\"stdout\"}}", serde_json::to_string(&format!("{line}\n")).expect("a string"));
            for text in [line.clone(), docker, format!("3: {line}"), line.replace("\":", "\" : ")] {
                let a = analyze_texts(&[("ras.json", &text)]);
                assert_eq!(a.findings.first().map(|f| (f.id, f.ranks.as_slice())), Some((id, &ranks[..])), "{text}");
                assert!(a.findings[0].evidence.iter().all(|e| e.line == 1 && e.text.len() < 100), "{:?}", a.findings[0].evidence);
            }
        }
        let even = [rank(0, 9), rank(1, 9)];
        assert!(analyze_texts(&[("ras.json", &report(&even, ""))]).findings.is_empty());
        assert!(analyze_texts(&[("x.json", "{\n  \"rank\": 0,\n  \"host\": \"gpu-a\",\n  \"AllReduce\": 4\n}\n")]).findings.is_empty());
    }
}
