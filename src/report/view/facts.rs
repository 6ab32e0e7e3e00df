//! The job in a few lines: name and value.

use super::lanes;
use super::ranks::{Board, Standing};
use crate::event::Library;
use crate::job::Job;
use crate::report::{plural, ranges};
use std::collections::BTreeSet;

/// The facts in the order in which one would ask for them.
pub fn facts(job: &Job, board: &Board) -> Vec<(&'static str, String)> {
    let mut list = Vec::new();
    let mut put = |name, value: String| {
        if !value.is_empty() {
            list.push((name, value));
        }
    };
    put("Library", library(job));
    put("Job", size(job));
    put("Hosts", hosts(job));
    put("GPUs", field(job, &["gpu.name", "rocm.gpu_name"], "name"));
    put("CUDA driver", field(job, &["init.driver"], "version"));
    put("ROCm", field(job, &["rocm.version_extra"], "rocm"));
    put("Network", job.nets.join(", "));
    put("RDMA devices", devices(job));
    put("Bootstrap", field(job, &["bootstrap.using"], "iface"));
    put("Connections", connections(job));
    put("Communicators", communicators(job));
    put("Reached", reached(board));
    put("Inputs", inputs(job));
    list
}

fn library(job: &Job) -> String {
    let name = match job.library {
        Some(Library::Nccl) => "NCCL",
        Some(Library::Rccl) => "RCCL",
        None => "",
    };
    format!("{name} {}", job.versions.join(", ")).trim().to_owned()
}

fn size(job: &Job) -> String {
    match (job.nranks, job.nnodes) {
        (Some(ranks), Some(nodes)) => format!("{} on {}", plural(ranks.into(), "rank"), plural(nodes.into(), "node")),
        (Some(ranks), None) => plural(ranks.into(), "rank"),
        (None, Some(nodes)) => plural(nodes.into(), "node"),
        (None, None) => String::new(),
    }
}

fn hosts(job: &Job) -> String {
    const MOST: usize = 8;
    let names: Vec<String> =
        job.hosts.iter().take(MOST).map(|h| if h.ranks.is_empty() { h.name.clone() } else { format!("{} ({})", h.name, ranges(&h.ranks, Some(16))) }).collect();
    let more = job.hosts.len().saturating_sub(MOST);
    names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// The distinct values of a field, at most four.
fn field(job: &Job, kinds: &[&str], name: &str) -> String {
    let mut values: BTreeSet<&str> = BTreeSet::new();
    for kind in kinds {
        values.extend(job.procs.iter().flat_map(|p| p.log.ledger.of(kind)).filter_map(|e| e.first.get(name)).filter(|v| !v.is_empty()));
    }
    let shown: Vec<&str> = values.iter().copied().take(4).collect();
    shown.join(", ") + if values.len() > 4 { ", …" } else { "" }
}

/// `mlx5_0:1/RoCE` of `[0]mlx5_0:1/RoCE [1]…`, over all ranks.
fn devices(job: &Job) -> String {
    let lists = job.procs.iter().flat_map(|p| p.log.ledger.of("ib.using")).filter_map(|e| e.first.get("list"));
    let names: BTreeSet<&str> = lists.flat_map(|l| l.split('[').filter_map(|part| part.split_once(']')).map(|(_, name)| name.trim())).filter(|n| n.contains(':')).collect();
    let shown: Vec<&str> = names.iter().copied().take(8).collect();
    shown.join(", ") + &if names.len() > 8 { format!(" and {} more", names.len() - 8) } else { String::new() }
}

fn connections(job: &Job) -> String {
    let lanes = lanes(job);
    let shown: Vec<String> = lanes.iter().take(6).map(|l| format!("{} × {} ({})", l.pairs, l.name, plural(l.channels, "channel"))).collect();
    shown.join(", ") + if lanes.len() > 6 { ", …" } else { "" }
}

fn communicators(job: &Job) -> String {
    let last = job.last_run();
    let all = job.comms.iter().filter(|c| c.run == last).count() as u64;
    let splits = job.comms.iter().filter(|c| c.run == last && c.is_child).count();
    match (all, splits) {
        (0, _) => String::new(),
        (all, 0) => all.to_string(),
        (all, splits) => format!("{all}, of which {splits} are splits"),
    }
}

fn reached(board: &Board) -> String {
    let part = |standing: Standing| {
        let count = board.count(standing);
        (count > 0).then(|| format!("{count} {}", standing.label()))
    };
    Standing::ALL.into_iter().rev().filter_map(part).collect::<Vec<_>>().join(", ")
}

fn inputs(job: &Job) -> String {
    let (lines, nccl) = job.streams.iter().fold((0u64, 0u64), |(l, n), s| (l.saturating_add(s.lines), n.saturating_add(s.nccl_lines)));
    let runs = if job.runs.len() > 1 { format!(", {} attempts", job.runs.len()) } else { String::new() };
    format!("{}, {} ({nccl} of the library){runs}", plural(job.streams.len() as u64, "file"), plural(lines, "line"))
}
