//! Which kinds of events are wanted.

use crate::event::catalog;
use crate::line::Level;
use std::collections::BTreeSet;

/// Kinds that no row of the tables names.
const TYPED: [&str; 11] = ["version", "setting", "channel", "collective", "warn.unknown", "init.start", "init.named", "init.complete", "init.layout", "init.destroy", "init.abort"];

/// Everything that failed, whatever its subsystem.
const FAILURE: &str = "failure";

/// Subsystems and endings of kinds that tell of failures.
const FAILING: [&str; 3] = ["app", "cuda", "launch"];
const ENDINGS: [&str; 14] = ["failed", "failure", "error", "fault", "timeout", "died", "dead", "killed", "fatal", "oom", "lost", "violation", "gone", "exceeded"];

/// A choice of kinds; none chosen means all.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    wanted: Vec<String>,
    failure: bool,
}

impl Kinds {
    /// Reads `net`, `ib`, `ib.modify_qp`, `failure`. The error names what is unknown.
    pub fn new(names: &[String]) -> Result<Self, String> {
        let mut kinds = Self::default();
        let mut all: BTreeSet<&str> = catalog().shapes().map(|s| s.kind).chain(TYPED).collect();
        let systems: BTreeSet<&str> = all.iter().map(|k| k.split('.').next().unwrap_or(k)).collect();
        all.extend(systems.iter().copied());
        for name in names {
            if name == FAILURE {
                kinds.failure = true;
            } else if all.contains(name.as_str()) {
                kinds.wanted.push(name.clone());
            } else {
                let near = all.iter().map(|k| (strsim::jaro_winkler(name, k), *k)).filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
                return Err(match near {
                    Some((_, kind)) => format!("{name}: there is no such kind of event; did you mean {kind}?"),
                    None => format!("{name}: there is no such kind of event; the subsystems are {FAILURE}, {}", systems.into_iter().collect::<Vec<_>>().join(", ")),
                });
            }
        }
        Ok(kinds)
    }

    /// Whether an event is wanted.
    pub fn wants(&self, kind: &str, level: Option<Level>) -> bool {
        if self.wanted.is_empty() && !self.failure {
            return true;
        }
        let named = self.wanted.iter().any(|w| kind.strip_prefix(w.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
        named || (self.failure && is_failure(kind, level))
    }
}

fn is_failure(kind: &str, level: Option<Level>) -> bool {
    let (system, word) = kind.split_once('.').unwrap_or((kind, ""));
    matches!(level, Some(Level::Warn | Level::Error)) || FAILING.contains(&system) || ENDINGS.iter().any(|end| word.ends_with(end))
}
