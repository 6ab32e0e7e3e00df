//! The rows, one table a subsystem. A new failure text is one row here.

use super::{Shape, shape};

mod bootstrap;
mod cuda;
mod framework;
mod hostfacts;
mod ib;
mod kernel;
mod launcher;
mod lifecycle;
mod net;
mod p2p;
mod perftest;
mod plugin;
mod proxy;
mod python;
mod ras;
mod ray;
mod rccl;
mod rocm;
mod socket;
mod torch;

pub use framework::{NCCL_STAGE_OVER, PROOF_OF_COLLECTIVE};

/// All tables. Order decides only between rows that are equally specific.
pub const TABLES: &[&[Shape]] = &[
    lifecycle::SHAPES,
    bootstrap::SHAPES,
    socket::SHAPES,
    net::SHAPES,
    plugin::SHAPES,
    ib::SHAPES,
    p2p::SHAPES,
    proxy::SHAPES,
    cuda::SHAPES,
    torch::SHAPES,
    framework::SHAPES,
    ray::SHAPES,
    perftest::SHAPES,
    python::SHAPES,
    launcher::SHAPES,
    rocm::SHAPES,
    rccl::SHAPES,
    kernel::SHAPES,
    hostfacts::SHAPES,
    ras::SHAPES,
];

/// A row of a line that has no NCCL header: kind, format, source, meaning.
const fn line(kind: &'static str, format: &'static str, source: &'static str, meaning: &'static str) -> Shape {
    shape(kind, format, "", "", source, meaning).any()
}
