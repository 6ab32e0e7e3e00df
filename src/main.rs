//! The ncclog binary.

fn main() -> std::process::ExitCode {
    ncclog::cli::run()
}
