//! Compares how many calls each rank issued on one communicator. `opCount` takes no part: it is no call counter.

use super::super::finding::{Confidence, Evidence, Finding, Severity};
use super::super::query::{Ask, capital, ranks_text};
use crate::digest::{CommLog, KeptCall, Sequence};
use crate::event::Function;
use crate::job::{Comm, Job, Member, divergence};

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

/// No call is known to be missing in the logs: no beginning is cut off, and Ray did not fold equal lines into one.
pub fn are_whole(ask: Ask<'_>) -> bool {
    if ask.procs().any(|(_, p)| p.log.ledger.iter().any(|e| e.samples.iter().any(|s| s.repeated > 1))) {
        return false;
    }
    let begun = |log: &CommLog| log.start.is_some() || log.complete.is_some();
    let logs = || ask.comms().flat_map(|c| ask.views(c)).map(|(_, l)| l);
    !logs().any(begun) || logs().filter(|l| l.calls.len > 0).all(begun)
}

/// Ranks that issued fewer calls than the others, where all that they issued agree.
pub fn compare(ask: Ask<'_>) -> Option<Finding> {
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
    fewer(ask, comm, &views)
}

/// ` on commId 0x…`, if it has one.
pub fn name(comm: &Comm) -> String {
    comm.id.map_or_else(String::new, |id| format!(" on commId {id:#x}"))
}

/// `AllReduce of 1024 elements, datatype float32, op sum, root 0`
pub fn words(call: &KeptCall) -> String {
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
    place(job, view.member, call)
}

/// A call of a member as evidence.
pub fn place(job: &Job, member: &Member, call: &KeptCall) -> Evidence {
    let stream = job.comm_log(member).stream;
    Evidence { file: job.path(stream).to_owned(), line: call.line, offset: call.offset, rank: member.rank, text: format!("{} (as read from this line)", words(call)) }
}

/// The hosts of members, each once.
pub fn hosts<'a>(job: &Job, members: impl Iterator<Item = &'a Member>) -> Vec<String> {
    let names: std::collections::BTreeSet<&str> = members.map(|m| job.procs[m.proc].host.as_str()).filter(|h| !h.is_empty()).collect();
    names.into_iter().map(str::to_owned).collect()
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
    f.hosts = hosts(ask.job, short.iter().map(|v| v.member));
    f.ranks = ranks;
    Some(f)
}

/// At least one of the short ranks closed without an abort.
fn clean_exit(short: &[&View<'_>]) -> bool {
    short.iter().any(|v| matches!(v.log.end, Some((false, _))))
}

/// Who issued how many, on the largest communicator whose ranks issued different numbers of the same collectives.
pub fn counts(ask: Ask<'_>) -> Option<String> {
    let differs = |c: &&Comm| !ask.job.divergences.iter().any(|d| std::ptr::eq(*c, &raw const ask.job.comms[d.comm]));
    ask.comms().filter(differs).filter(|c| c.id.is_some() || !c.is_child).filter(|c| !closed(ask, c)).find_map(|comm| {
        let mut groups: std::collections::BTreeMap<u64, Vec<u32>> = std::collections::BTreeMap::new();
        for (member, log) in ask.views(comm).filter(|(_, l)| l.calls.len > 0) {
            groups.entry(log.calls.len).or_default().extend(member.rank);
        }
        let (fewest, few) = groups.first_key_value()?;
        let (most, many) = groups.last_key_value().filter(|(most, _)| *most != fewest)?;
        let between = if groups.len() > 2 { ", the others a number between" } else { "" };
        Some(format!("The collectives{} agree as far as they go: {} issued {fewest} of them, {} issued {most}{between}.", name(comm), ranks_text(few), ranks_text(many)))
    })
}

/// All ranks with a log closed the communicator in good order: nobody waits, whatever lines were lost.
fn closed<'a>(ask: Ask<'a>, comm: &'a Comm) -> bool {
    ask.views(comm).all(|(_, l)| matches!(l.end, Some((false, _))))
}

/// Messages of which one side is missing: who waits for whom.
pub fn unanswered(ask: Ask<'_>) -> Vec<String> {
    let mut list = Vec::new();
    for comm in ask.comms().filter(|c| !closed(ask, c)) {
        for pair in divergence::unpaired(ask.job, comm) {
            let rank = |m: usize| comm.members[m].rank.map_or_else(|| "a rank".to_owned(), |r| format!("rank {r}"));
            let (sender, receiver) = (rank(pair.sender), rank(pair.receiver));
            list.push(if pair.sent > pair.received {
                format!("{} sent {} messages to {receiver}, which issued {} Recv calls for them.", capital(&sender), pair.sent, pair.received)
            } else {
                format!("{} issued {} Recv calls for {sender}, which sent {} messages.", capital(&receiver), pair.received, pair.sent)
            });
        }
    }
    list
}
