//! Counts what the warnings of a log say: an iterator over events, without any analysis.
//!
//! `cargo run --example warnings -- rank0.log`

use ncclog::Log;
use ncclog::line::Level;
use std::collections::BTreeMap;

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let log = Log::new(std::fs::read(&path)?);
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for found in log.events() {
            if found.record.header.is_some_and(|h| matches!(h.level, Level::Warn | Level::Error)) {
                counts.entry(found.event.kind()).or_insert((0, found.line)).0 += 1;
            }
        }
        for (kind, (count, first)) in counts {
            println!("{path}:{first} {kind} {count}");
        }
    }
    Ok(())
}
