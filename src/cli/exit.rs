//! Exit codes. They are part of the interface: scripts and launchers act on them.

use crate::rules::{Finding, Severity};
use clap::ValueEnum;

/// No finding at or above `--fail-on`.
pub const OK: u8 = 0;

/// At least one finding at or above `--fail-on`.
pub const FOUND: u8 = 1;

/// Wrong usage, or an input that could not be read or an output that could not be written. What could be read was
/// still analysed and reported.
pub const TROUBLE: u8 = 2;

/// Only from `follow --until`: the time ran out before anything was certain.
pub const UNDECIDED: u8 = 3;

/// From which severity on a finding makes the exit code 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors
    #[default]
    Error,
    /// Errors and warnings
    Warning,
    /// Nothing
    Never,
}

/// The exit code of an analysis. A consequence counts like its cause: the job is as broken.
pub fn status(findings: &[Finding], trouble: bool, fail_on: FailOn) -> u8 {
    let worst = match fail_on {
        FailOn::Error => Some(Severity::Error),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Never => None,
    };
    if trouble {
        TROUBLE
    } else if worst.is_some_and(|worst| findings.iter().any(|f| f.severity <= worst)) {
        FOUND
    } else {
        OK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Confidence;

    #[test]
    fn severity_decides() {
        let of = |s| vec![Finding::new("x", s, Confidence::Likely, "t")];
        for (list, error, warning) in [(Vec::new(), OK, OK), (of(Severity::Info), OK, OK), (of(Severity::Warning), OK, FOUND), (of(Severity::Error), FOUND, FOUND)] {
            assert_eq!(status(&list, false, FailOn::Error), error);
            assert_eq!(status(&list, false, FailOn::Warning), warning);
            assert_eq!(status(&list, false, FailOn::Never), OK);
            assert_eq!(status(&list, true, FailOn::Never), TROUBLE);
        }
    }

    #[test]
    fn a_consequence_counts() {
        let mut finding = Finding::new("x", Severity::Error, Confidence::Likely, "t");
        finding.caused_by = Some("y");
        assert_eq!(status(&[finding], false, FailOn::Error), FOUND);
    }
}
