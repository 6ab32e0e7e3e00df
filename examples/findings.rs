//! Prints what is wrong in the logs that are named, one line a root cause, with its first proof.
//!
//! `cargo run --example findings -- logs/`

use ncclog::{Analysis, Incomplete};

fn main() {
    let analysis = match Analysis::from_paths(std::env::args().skip(1)) {
        Ok(analysis) => analysis,
        Err(Incomplete { analysis, problems }) => {
            for problem in problems {
                eprintln!("{}: {}", problem.path, problem.text);
            }
            *analysis
        }
    };
    println!("{:?}", analysis.verdict);
    for finding in analysis.findings.iter().filter(|f| f.is_root()) {
        println!("{:?} {} ({:?}): {}", finding.severity, finding.id, finding.confidence, finding.title);
        if let Some(proof) = finding.evidence.first() {
            println!("  {}:{}", proof.file, proof.line);
        }
    }
}
