//! The PCIe bridges between GPUs of one host.

use super::NodeFacts;
use crate::digest::{Acs, PciBridge, bus_of};

/// Domain and number of a PCI bus.
pub type Bus = (u32, u8);

/// What stands between the GPUs of a host.
#[derive(Debug)]
pub struct Between<'a> {
    /// Bridges that a transfer between two of the GPUs passes, in the order in which they were listed.
    pub bridges: Vec<&'a PciBridge>,
    /// The nearest bridge above all of them, if they share one: the switch that joins them.
    pub shared: Option<&'a PciBridge>,
}

impl NodeFacts {
    /// What stands between GPUs on these buses; `None` where it was not told of every one.
    pub fn between(&self, gpus: &[Bus]) -> Option<Between<'_>> {
        let bridges = &self.facts.bridges;
        let below = |b: &PciBridge, gpu: Bus| holds(&b.device, b.below, gpu);
        let told = |gpu: &Bus| bridges.iter().any(|b| below(b, *gpu));
        let (first, rest) = gpus.split_first()?;
        if rest.iter().all(|gpu| gpu == first) || !gpus.iter().all(told) {
            return None;
        }
        let shared = bridges.iter().filter(|b| gpus.iter().all(|g| below(b, *g))).min_by_key(|b| b.below.1 - b.below.0);
        let passed = bridges.iter().filter(|b| on_the_way(&b.device, b.below, gpus)).collect();
        Some(Between { bridges: passed, shared })
    }

    /// Whether access control redirects requests between GPUs on these buses: the proving lines. A bridge above all of
    /// them or above none is not on the way. Bridges whose buses are not told count, other devices do not; `None` where
    /// no line tells.
    pub fn acs(&self, gpus: &[Bus]) -> Option<(bool, Vec<&Acs>)> {
        let counts = |a: &&Acs| match self.below(a) {
            Some(below) => gpus.is_empty() || on_the_way(&a.device, below, gpus),
            None => a.bridge || a.device.is_empty(),
        };
        let mine: Vec<&Acs> = self.facts.acs.iter().filter(counts).collect();
        let on: Vec<&Acs> = mine.iter().filter(|a| a.redirects).copied().collect();
        match (mine.is_empty(), on.is_empty()) {
            (true, _) => None,
            (false, true) => Some((false, mine.into_iter().take(1).collect())),
            (false, false) => Some((true, on)),
        }
    }

    /// The buses below a device, by its own heading or by the tree.
    fn below(&self, acs: &Acs) -> Option<(u8, u8)> {
        let same = |b: &&PciBridge| bus_of(&b.device).is_some_and(|bus| bus_of(&acs.device) == Some(bus)) && slot(&b.device) == slot(&acs.device);
        acs.below.or_else(|| self.facts.bridges.iter().find(same).map(|b| b.below))
    }
}

/// Of some of the GPUs, not of all of them. Of a single one it is not known whom it talks to.
fn on_the_way(device: &str, below: (u8, u8), gpus: &[Bus]) -> bool {
    let mine = gpus.iter().filter(|g| holds(device, below, **g)).count();
    mine > 0 && (mine < gpus.len() || gpus.iter().all(|g| *g == gpus[0]))
}

/// The bus lies below a bridge: buses are numbered in each domain by themselves.
fn holds(device: &str, (first, last): (u8, u8), (domain, bus): Bus) -> bool {
    (device.is_empty() || bus_of(device).is_some_and(|(d, _)| d == domain)) && (first..=last).contains(&bus)
}

/// `01.1` of `0000:40:01.1`.
fn slot(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or(address)
}
