//! The first collective that is not the same on all ranks: another one, a skipped one, an added one, or the stretch
//! in which it lies.

use super::super::finding::{Confidence, Evidence, Finding, Severity};
use super::super::query::{Ask, capital, ranks_text};
use super::calls::{hosts, name, place, words};
use crate::digest::KeptCall;
use crate::job::divergence::{Divergence, Shift, Side};
use crate::job::{Comm, Job};

/// The earliest known difference on any communicator, exact ones first.
pub fn compare(ask: Ask<'_>) -> Option<Finding> {
    let job = ask.job;
    let found = job.divergences.iter().min_by_key(|d| (!d.is_exact(), d.comm))?;
    let comm = &job.comms[found.comm];
    Some(if found.is_exact() { exact(job, comm, found) } else { stretch(job, comm, found) })
}

fn ranks(comm: &Comm, side: &Side) -> Vec<u32> {
    side.members.iter().filter_map(|m| comm.members[*m].rank).collect()
}

/// All ranks but those of the largest side.
fn odd(comm: &Comm, found: &Divergence) -> Vec<u32> {
    let mut odd: Vec<u32> = found.sides.iter().skip(1).flat_map(|s| ranks(comm, s)).collect();
    odd.sort_unstable();
    odd
}

fn side_hosts(job: &Job, comm: &Comm, found: &Divergence) -> Vec<String> {
    hosts(job, found.sides.iter().skip(1).flat_map(|s| &s.members).map(|m| &comm.members[*m]))
}

fn proof(job: &Job, comm: &Comm, side: &Side) -> Option<Evidence> {
    let call = side.call.as_ref()?;
    let mut evidence = place(job, &comm.members[*side.members.first()?], call);
    if let Some(text) = &side.text {
        evidence.text.clone_from(text);
    }
    Some(evidence)
}

fn exact(job: &Job, comm: &Comm, found: &Divergence) -> Finding {
    let number = found.agreed + 1;
    let odd = odd(comm, found);
    let mut f = Finding::new("collective-mismatch", Severity::Error, Confidence::Certain, title(found, &odd));
    let said: Vec<String> = found.sides.iter().filter_map(|s| Some(format!("{} called {}", ranks_text(&ranks(comm, s)), words(s.call.as_ref()?)))).collect();
    let shift = found.sides.get(1).and_then(|s| s.shift);
    let after = match shift {
        Some(Shift::Skipped(n)) => {
            format!(
                " Behind it the order of {} goes on as if {} had been left out, so {} never issued.",
                ranks_text(&odd),
                calls(n),
                if n == 1 { "this call was" } else { "they were" }
            )
        }
        Some(Shift::Added(n)) => format!(" Behind {} more the order of {} goes on like everywhere else.", calls(n), ranks_text(&odd)),
        None => String::new(),
    };
    let before =
        if found.agreed == 0 { String::new() } else { format!(" The {} before it agree.", if found.agreed == 1 { "call".to_owned() } else { format!("{} calls", found.agreed) }) };
    f.why = format!(
        "Collective call {number}{} is not the same on all ranks: {}.{before}{after} A collective needs the same operation, size and type on every rank; otherwise it hangs, aborts or gives wrong results.",
        name(comm),
        said.join("; ")
    );
    // The odd side first: it is the one to look at.
    let order = found.sides.iter().skip(1).take(1).chain(found.sides.first()).chain(found.sides.iter().skip(2));
    f.evidence = order.filter_map(|s| proof(job, comm, s)).collect();
    f.hosts = side_hosts(job, comm, found);
    f.ranks = odd;
    f
}

fn calls(n: u64) -> String {
    if n == 1 { "one call".to_owned() } else { format!("{n} calls") }
}

fn title(found: &Divergence, odd: &[u32]) -> String {
    let number = found.agreed + 1;
    let (Some(most), Some(other)) = (found.sides.first().and_then(|s| s.call.as_ref()), found.sides.get(1).and_then(|s| s.call.as_ref())) else {
        return format!("{} left the common order at call {number}", ranks_text(odd));
    };
    let who = capital(&ranks_text(odd));
    match found.sides[1].shift {
        Some(Shift::Skipped(1)) => format!("{who} never issued call {number}: {}", words(most)),
        Some(Shift::Skipped(n)) => format!("{who} skipped {n} collectives from call {number} on: {}", words(most)),
        Some(Shift::Added(1)) => format!("{who} issued one more collective at call {number}: {}", words(other)),
        Some(Shift::Added(n)) => format!("{who} issued {n} more collectives from call {number} on: {}", words(other)),
        None => {
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
            let value = |call: &KeptCall| match what {
                "operation" => call.function.name().to_owned(),
                "count" => format!("{} of {}", call.function.name(), call.count),
                _ => words(call),
            };
            let verb = if odd.len() == 1 { "differs" } else { "differ" };
            format!("{who} {verb} in the {what} of call {number}: {} against {}", value(other), value(most))
        }
    }
}

fn stretch(job: &Job, comm: &Comm, found: &Divergence) -> Finding {
    let odd = odd(comm, found);
    let (from, to) = (found.agreed + 1, found.until);
    let mut f =
        Finding::new("collective-mismatch", Severity::Error, Confidence::Certain, format!("{} left the common order between calls {from} and {to}", capital(&ranks_text(&odd))));
    f.why = format!(
        "The ranks issued the same collectives{} up to call {} and different ones before call {to}. The calls themselves are older than what is kept of a log, and the log could not be read a second time; give plain files, or `--refine` for compressed ones, to have the first difference named.",
        name(comm),
        found.agreed
    );
    f.hosts = side_hosts(job, comm, found);
    f.evidence = found.sides.iter().rev().filter_map(|s| last(job, comm, s)).take(2).collect();
    f.ranks = odd;
    f
}

/// The first kept call of a side: the nearest one that the digest can show.
fn last(job: &Job, comm: &Comm, side: &Side) -> Option<Evidence> {
    let member = &comm.members[*side.members.first()?];
    let call = job.comm_log(member).calls.tail.front()?;
    Some(place(job, member, call))
}
