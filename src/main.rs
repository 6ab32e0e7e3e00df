//! The ncclog binary.

fn main() {}
