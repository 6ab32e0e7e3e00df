//! The rows, one table a subsystem. A new failure text is one row here.

use super::Shape;

mod bootstrap;
mod cuda;
mod framework;
mod ib;
mod kernel;
mod lifecycle;
mod net;
mod p2p;
mod plugin;
mod proxy;
mod rocm;
mod socket;
mod torch;

pub use framework::PROOF_OF_COLLECTIVE;

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
    rocm::SHAPES,
    kernel::SHAPES,
];
