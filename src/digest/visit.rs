//! Walks over all records of a process.

use super::{Process, Sample};
use ahash::AHashMap;
use std::sync::Arc;

impl Process {
    /// Calls `visit` for every record that it holds, shared ones as often as they are named.
    pub fn each_sample_mut(&mut self, visit: &mut dyn FnMut(&mut Arc<Sample>)) {
        visit(&mut self.first);
        visit(&mut self.last);
        self.settings.values_mut().for_each(&mut *visit);
        for entry in self.ledger.entries_mut() {
            visit(&mut entry.first);
            visit(&mut entry.last);
            entry.samples.iter_mut().for_each(&mut *visit);
        }
        for comm in &mut self.comms {
            let named = [&mut comm.first, &mut comm.start, &mut comm.complete, &mut comm.last];
            named.into_iter().flatten().for_each(&mut *visit);
            comm.end.iter_mut().for_each(|(_, s)| visit(s));
            comm.net.iter_mut().for_each(|(_, s)| visit(s));
            comm.channels.iter_mut().for_each(|c| visit(&mut c.first));
        }
    }

    /// Calls `visit` for every record that it holds, shared ones as often as they are named.
    pub fn each_sample(&self, visit: &mut dyn FnMut(&Arc<Sample>)) {
        visit(&self.first);
        visit(&self.last);
        self.settings.values().for_each(&mut *visit);
        for entry in self.ledger.iter() {
            visit(&entry.first);
            visit(&entry.last);
            entry.samples.iter().for_each(&mut *visit);
        }
        for comm in &self.comms {
            let named = [&comm.first, &comm.start, &comm.complete, &comm.last];
            named.into_iter().flatten().for_each(&mut *visit);
            comm.end.iter().for_each(|(_, s)| visit(s));
            comm.net.iter().for_each(|(_, s)| visit(s));
            comm.channels.iter().for_each(|c| visit(&c.first));
        }
    }

    /// Gives it to another stream.
    pub(super) fn renumber(&mut self, stream: u32) {
        if self.stream == stream {
            return;
        }
        self.stream = stream;
        self.comms.iter_mut().for_each(|c| c.stream = stream);
        // The old record is held as long as its address stands for it.
        let mut known: AHashMap<*const Sample, (Arc<Sample>, Arc<Sample>)> = AHashMap::new();
        self.each_sample_mut(&mut |sample| {
            let (_, moved) = known.entry(Arc::as_ptr(sample)).or_insert_with(|| {
                let mut moved = Sample::clone(sample);
                moved.at.stream = stream;
                (Arc::clone(sample), Arc::new(moved))
            });
            *sample = Arc::clone(moved);
        });
    }
}
