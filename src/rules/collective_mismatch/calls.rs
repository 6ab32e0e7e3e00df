//! Compares the calls that each rank issued on one communicator. `opCount` takes no part: it is no call counter.

use super::super::finding::{Confidence, Evidence, Finding, Severity};
use super::super::query::{Ask, ranges, ranks_text};
use crate::digest::{CommLog, KeptCall, Sequence};
use crate::event::Function;
use crate::job::{Comm, Job, Member};
use std::collections::BTreeMap;

/// One rank's calls.
struct View<'a> {
    rank: u32,
    member: &'a Member,
    log: &'a CommLog,
}

impl View<'_> {
    fn calls(&self) -> &Sequence {
        &self.log.calls
    }
}

/// The first difference on any communicator.
pub fn compare(ask: Ask<'_>) -> Option<Finding> {
    // Ray folds equal lines of several workers into one, so no rank's calls are complete.
    if ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.samples.iter().any(|s| s.repeated > 1))) {
        return None;
    }
    ask.comms().find_map(|comm| on(ask, comm))
}

fn on<'a>(ask: Ask<'a>, comm: &'a Comm) -> Option<Finding> {
    // Children without an id are joined by their order only; that is too weak to accuse a rank.
    if comm.id.is_none() && comm.is_child {
        return None;
    }
    let views: Vec<View<'_>> = ask.views(comm).filter(|(_, l)| l.calls.len > 0).filter_map(|(member, log)| Some(View { rank: member.rank?, member, log })).collect();
    if views.len() < 2 {
        return None;
    }
    // A log whose beginning is cut off lacks calls; its n-th is not the others' n-th.
    let begun = |log: &CommLog| log.start.is_some() || log.complete.is_some();
    if views.iter().any(|v| !begun(v.log)) && ask.comms().flat_map(|c| ask.views(c)).any(|(_, l)| begun(l)) {
        return None;
    }
    stretch(&views).or_else(|| differing_call(ask.job, comm, &views)).or_else(|| fewer(ask, comm, &views))
}

fn name(comm: &Comm) -> String {
    comm.id.map_or_else(String::new, |id| format!(" on commId {id:#x}"))
}

/// `AllReduce of 1024 elements, datatype float32, op sum, root 0`
fn words(call: &KeptCall) -> String {
    let types = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "fp8_e4m3", "fp8_e5m2"];
    let datatype = types.get(usize::from(call.datatype)).map_or_else(|| format!("datatype {}", call.datatype), |t| (*t).to_owned());
    let root = if matches!(call.function, Function::Broadcast | Function::Reduce | Function::Gather | Function::Scatter) { format!(", root {}", call.root) } else { String::new() };
    let ops = ["sum", "prod", "max", "min", "avg"];
    let op = match call.function {
        Function::AllReduce | Function::ReduceScatter | Function::Reduce => format!(", {}", ops.get(usize::from(call.op)).copied().unwrap_or("own op")),
        _ => String::new(),
    };
    format!("{} of {} {datatype}{op}{root}", call.function.name(), call.count)
}

fn evidence(job: &Job, view: &View<'_>, call: &KeptCall) -> Evidence {
    let proc = &job.procs[view.member.proc];
    let stream = view.log.first.as_ref().map_or(proc.log.stream, |s| s.at.stream);
    Evidence { file: job.path(stream).to_owned(), line: call.line, offset: call.offset, rank: Some(view.rank), text: format!("{} (as read from this line)", words(call)) }
}

/// Checkpoints that differ before the first call that is kept in full.
fn stretch(views: &[View<'_>]) -> Option<Finding> {
    let kept_from = views.iter().map(|v| v.calls().len - v.calls().tail.len() as u64).max()?;
    let shortest = views.iter().map(|v| v.calls().len).min()?;
    let stride = views.iter().map(|v| v.calls().stride).max()?.max(1);
    let limit = kept_from.min(shortest);
    let (mut good, mut n) = (0, stride);
    while n <= limit {
        let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for v in views {
            groups.entry(v.calls().hash_at(n)?).or_default().push(v.rank);
        }
        if groups.len() > 1 {
            let odd = outliers(groups);
            let mut f =
                Finding::new("collective-mismatch", Severity::Error, Confidence::Certain, format!("{} left the common order between calls {} and {n}", ranks_text(&odd), good + 1));
            f.why = format!(
                "The ranks issued the same collectives up to call {good} and different ones before call {n}; the calls themselves are older than what is kept. From there on every rank waits for, or mixes data with, another operation."
            );
            f.ranks = odd;
            return Some(f);
        }
        (good, n) = (n, n + stride);
    }
    None
}

/// The smaller groups; with a tie, those of the later ranks.
fn outliers<K: Ord>(groups: BTreeMap<K, Vec<u32>>) -> Vec<u32> {
    let mut lists: Vec<Vec<u32>> = groups.into_values().collect();
    lists.sort_by_key(|l| (std::cmp::Reverse(l.len()), l.first().copied()));
    let mut odd: Vec<u32> = lists.into_iter().skip(1).flatten().collect();
    odd.sort_unstable();
    odd
}

/// The first kept call that is not the same everywhere.
fn differing_call(job: &Job, comm: &Comm, views: &[View<'_>]) -> Option<Finding> {
    let from = views.iter().map(|v| v.calls().len - v.calls().tail.len() as u64).max()?;
    let to = views.iter().map(|v| v.calls().len).min()?;
    for i in from..to {
        let row: Vec<(&View<'_>, &KeptCall)> = views.iter().filter_map(|v| Some((v, v.calls().get(i)?))).collect();
        if row.iter().any(|(_, c)| c.function == Function::Other) {
            continue;
        }
        let mut groups: Vec<(&KeptCall, Vec<&View<'_>>)> = Vec::new();
        for (v, c) in row {
            match groups.iter_mut().find(|(k, _)| k.same(c)) {
                Some((_, list)) => list.push(v),
                None => groups.push((c, vec![v])),
            }
        }
        if groups.len() < 2 {
            continue;
        }
        groups.sort_by_key(|(_, l)| (std::cmp::Reverse(l.len()), l.first().map(|v| v.rank)));
        return Some(difference(job, comm, i, &groups));
    }
    None
}

fn difference(job: &Job, comm: &Comm, i: u64, groups: &[(&KeptCall, Vec<&View<'_>>)]) -> Finding {
    let of = |list: &[&View<'_>]| list.iter().map(|v| v.rank).collect::<Vec<_>>();
    let (most, most_views) = &groups[0];
    let (other, other_views) = &groups[1];
    let odd: Vec<u32> = groups.iter().skip(1).flat_map(|(_, l)| of(l)).collect();
    let what = if most.function != other.function {
        "operation"
    } else if most.count != other.count {
        "count"
    } else if most.datatype != other.datatype {
        "data type"
    } else if most.root != other.root {
        "root"
    } else {
        "reduction"
    };
    let mut f = Finding::new(
        "collective-mismatch",
        Severity::Error,
        Confidence::Certain,
        format!("{} differ in the {what} of call {}: {} against {}", ranks_text(&odd), i + 1, other.function.name(), most.function.name()),
    );
    if odd.len() == 1 {
        f.title = f.title.replacen(" differ in", " differs in", 1);
    }
    let side: Vec<String> = groups.iter().take(4).map(|(c, l)| format!("rank {} called {}", ranges(&of(l)), words(c))).collect();
    f.why = format!(
        "Collective call {}{} is not the same on all ranks: {}. All calls before it agree. A collective needs the same operation, size and type on every rank; otherwise it hangs, aborts or gives wrong results.",
        i + 1,
        name(comm),
        side.join("; ")
    );
    f.evidence = std::iter::once((other, other_views[0])).chain(std::iter::once((most, most_views[0]))).map(|(c, v)| evidence(job, v, c)).collect();
    f.evidence.extend(groups.iter().skip(2).take(3).map(|(c, l)| evidence(job, l[0], c)));
    f.hosts = hosts(job, other_views);
    f.ranks = odd;
    f
}

fn hosts(job: &Job, views: &[&View<'_>]) -> Vec<String> {
    let mut list: Vec<String> = views.iter().map(|v| job.procs[v.member.proc].host.clone()).filter(|h| !h.is_empty()).collect();
    list.dedup();
    list
}

/// All calls agree as far as they go, but some ranks issued fewer and did not simply die: they left or went on elsewhere.
fn fewer<'a>(ask: Ask<'a>, comm: &Comm, views: &[View<'a>]) -> Option<Finding> {
    if comm.nranks.is_some_and(|n| views.len() < n as usize) && comm.members.len() != views.len() {
        return None;
    }
    let most = views.iter().map(|v| v.calls().len).max()?;
    let short: Vec<&View<'_>> = views.iter().filter(|v| v.calls().len < most).collect();
    let long: Vec<&View<'_>> = views.iter().filter(|v| v.calls().len == most).collect();
    // A log that just ends may have been cut or its rank killed; only a rank that closed its communicator has surely issued no more.
    let closed = short.iter().all(|v| v.log.end.is_some());
    let stuck = long.iter().any(|v| matches!(v.log.end, Some((true, _)) | None));
    if short.is_empty() || !closed || !stuck || !clean_exit(&short) || super::teardown::origin(ask).is_some() {
        return None;
    }
    let ranks: Vec<u32> = short.iter().map(|v| v.rank).collect();
    let issued = short.iter().map(|v| v.calls().len).min()?;
    let call = long[0].calls().get(issued);
    let mut f = Finding::new(
        "collective-mismatch",
        Severity::Error,
        Confidence::Likely,
        format!("{} issued {issued} collectives, {} issued {most}", ranks_text(&ranks), ranks_text(&long.iter().map(|v| v.rank).collect::<Vec<_>>())),
    );
    let next = call.map_or_else(String::new, |c| format!(" The first that it never called is {}.", words(c)));
    f.why = format!(
        "All calls{} agree as far as they go, then {} closed the communicator while the others had enqueued more and could not finish.{next} A rank that was taken down by its launcher in between is the alternative.",
        name(comm),
        ranks_text(&ranks)
    );
    f.evidence = call.into_iter().map(|c| evidence(ask.job, long[0], c)).collect();
    f.evidence.extend(short.iter().take(2).filter_map(|v| v.calls().get(v.calls().len.checked_sub(1)?).map(|c| evidence(ask.job, v, c))));
    f.hosts = hosts(ask.job, &short);
    f.ranks = ranks;
    Some(f)
}

/// At least one of the short ranks closed without an abort.
fn clean_exit(short: &[&View<'_>]) -> bool {
    short.iter().any(|v| matches!(v.log.end, Some((false, _))))
}
