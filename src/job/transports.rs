//! What runs over what between the ranks of the world communicator.

use super::{Job, Transport};
use std::collections::BTreeMap;

/// The connections of the last run's world, each once: both ends of a NET connection print it.
pub fn of_world(job: &Job) -> Vec<Transport> {
    let mut counts: BTreeMap<(u32, u32, &str), BTreeMap<&str, u32>> = BTreeMap::new();
    for m in job.world().map(|w| w.members.as_slice()).unwrap_or_default() {
        for c in &job.comm_log(m).channels {
            *counts.entry((c.from, c.to, c.via.as_str())).or_default().entry(c.direction).or_default() += c.count;
        }
    }
    counts.into_iter().map(|((from, to, via), sides)| Transport { from, to, via: via.to_owned(), channels: sides.into_values().max().unwrap_or(0) }).collect()
}
