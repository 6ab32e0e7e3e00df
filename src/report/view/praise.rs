//! What is good about a job that works, concretely.

use super::ranks::{Board, Standing};
use super::story::warnings;
use super::{Carrier, carrier, compare, lanes};
use crate::report::plural;
use crate::rules::{Analysis, Verdict};

/// One line a fact; empty unless the job is healthy.
pub fn praise(analysis: &Analysis, board: &Board) -> Vec<String> {
    let job = &analysis.job;
    let mut list = Vec::new();
    if analysis.verdict != Verdict::Healthy {
        return list;
    }
    let through = board.count(Standing::Complete) + board.count(Standing::Running);
    if through > 0 && through == board.places.len() {
        let running = board.count(Standing::Running);
        let also = if running > 0 { format!("; {running} ran collectives") } else { String::new() };
        list.push(format!("All {} completed the initialisation{also}.", plural(through as u64, "rank")));
    }
    for (place, leaves) in [("Between nodes", true), ("Inside nodes", false)] {
        let names: Vec<String> = lanes(job).iter().filter(|l| kind(&l.name).leaves() == leaves).map(|l| format!("{} ({})", l.name, plural(l.pairs, "connection"))).collect();
        if !names.is_empty() {
            list.push(format!("{place} data goes over {}.", names.join(", ")));
        }
    }
    if job.ranks.len() > 1 && job.procs.iter().any(|p| p.nccl) && compare(job).is_empty() {
        list.push("Version, network and settings are the same on all ranks, as far as they are printed.".to_owned());
    }
    if warnings(job, job.last_run()).is_empty() {
        list.push("There is no warning of the library.".to_owned());
    }
    list
}

fn kind(lane: &str) -> Carrier {
    // A lane's name is the transport's beginning.
    carrier(lane)
}
