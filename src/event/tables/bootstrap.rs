//! Bootstrap: how ranks find each other over TCP. Source: `src/bootstrap.cc`.

use crate::event::shape::{Shape, Stage, shape};

const FAMILY: &str = "An address of an unknown family arrived: the peer speaks another version or runs with other settings.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape(
        "bootstrap.using",
        "Bootstrap~: Using [0]{!iface}:{ip}<",
        "2.5.6",
        "2.7.8",
        "bootstrap.cc",
        "The interface and address that this rank advertises for the out-of-band connections.",
    )
    .at(Stage::BootstrapInterface),
    shape(
        "bootstrap.using",
        "Bootstrap~: Using {!iface}:{ip}<",
        "2.8.3",
        "",
        "bootstrap.cc",
        "The interface and address that this rank advertises for the out-of-band connections.",
    )
    .at(Stage::BootstrapInterface),
    shape("bootstrap.using_net", "Bootstrap: Using {!hca:i}:{port:d}$", "2.24.3", "", "bootstrap.cc", "The out-of-band connections go over the net plugin (NCCL_OOB_NET_ENABLE).")
        .at(Stage::BootstrapInterface),
    shape(
        "bootstrap.timings",
        "Bootstrap timings total {total:f} (create {create:f}, send {send:f}, recv {recv:f}, ring {ring:f}",
        "2.23.4",
        "",
        "bootstrap.cc",
        "All ranks met; seconds by phase. A large recv is waiting for others, a large send is reaching the root.",
    )
    .at(Stage::Bootstrapped),
    shape("bootstrap.split_done", "bootstrapSplit: {text} DONE", "2.18.1", "2.22.3", "bootstrap.cc", "A child communicator's ranks met.").at(Stage::Bootstrapped),
    shape(
        "bootstrap.no_interface",
        "Bootstrap : no socket interface found",
        "2.5.6",
        "",
        "bootstrap.cc",
        "NCCL_SOCKET_IFNAME (or the address family) matches no interface of this host.",
    )
    .any(),
    shape(
        "bootstrap.no_interface",
        "Bootstrap: no socket interface found",
        "2.24.3",
        "",
        "bootstrap.cc",
        "NCCL_SOCKET_IFNAME (or the address family) matches no interface of this host.",
    )
    .any(),
    shape("bootstrap.no_interface", "NET/Socket : No usable listening interface found", "2.5.6", "", "misc/socket.cc", "No interface of this host fits NCCL_COMM_ID.").any(),
    shape("bootstrap.no_interface", "no device found matching {!name}, verify NCCL_OOB_NET_IFNAME", "2.24.3", "", "bootstrap.cc", "NCCL_OOB_NET_IFNAME matches no device.").any(),
    shape(
        "bootstrap.no_subnet",
        "Net : No interface found in the same subnet as remote address {!addr}",
        "2.5.6",
        "2.26.6",
        "misc/socket.cc",
        "NCCL_COMM_ID names an address in a subnet that this host is not in.",
    )
    .any(),
    shape(
        "bootstrap.no_subnet",
        "{func:i}: No interface found in the same subnet as remote address {!addr}",
        "2.27.3",
        "",
        "misc/socket.cc",
        "NCCL_COMM_ID names an address in a subnet that this host is not in.",
    )
    .any(),
    shape("bootstrap.bad_comm_id", "Invalid NCCL_COMM_ID{text}", "2.5.6", "", "bootstrap.cc", "NCCL_COMM_ID is not HOST:PORT.").any(),
    shape(
        "bootstrap.rank_mismatch",
        "Bootstrap Root : mismatch in rank count from procs {got:d} : {want:d}",
        "2.5.6",
        "2.22.3",
        "bootstrap.cc",
        "Ranks disagree on the number of ranks: two launches met, or one was started with another size.",
    )
    .any(),
    shape(
        "bootstrap.rank_mismatch",
        "Bootstrap Root : mismatch in info from procs, nranks {got:d} vs {want:d}",
        "2.23.4",
        "",
        "bootstrap.cc",
        "Ranks disagree on the number of ranks: two launches met, or one was started with another size.",
    )
    .any(),
    shape(
        "bootstrap.rank_twice",
        "Bootstrap Root : rank {!peer_rank:d} of {count:d} ranks has already checked in",
        "2.5.6",
        "",
        "bootstrap.cc",
        "Two processes claim one rank, or two jobs use one id.",
    )
    .any(),
    shape(
        "bootstrap.truncated",
        "Message truncated : received {!got:d} bytes instead of {!want:d}",
        "2.8.4",
        "",
        "bootstrap.cc",
        "The peer speaks another version or means another message: different libraries, settings, or foreign traffic.",
    )
    .any(),
    shape(
        "version.mismatch",
        "Mismatched NCCL version detected : rank {rank:d} version {!got:d} rank {peer_rank:d} version {!want:d}",
        "2.23.4",
        "",
        "init.cc",
        "Two ranks run different libraries.",
    )
    .any(),
    shape(
        "version.mismatch",
        "NCCL version mismatch with remote peer {!peer} (local: {!got:d}, remote {!want:d})",
        "2.24.3",
        "",
        "ras/ras.cc",
        "Two processes run different libraries.",
    )
    .any(),
    shape("gpu.duplicate", "Duplicate GPU detected : rank {!rank:d} and rank {!peer_rank:d} both on CUDA device {!bus:x}", "2.5.6", "2.29.7", "init.cc", "Two ranks use one GPU.")
        .any(),
    shape("gpu.duplicate", "Multiple ranks detected using the same GPU on this node.{text}", "2.30.3", "2.30.4", "init.cc", "Two ranks use one GPU.").any(),
    shape("gpu.duplicate", "Multiple Ranks are using the same GPU/Partition.{text}", "2.30.7", "", "init.cc", "Two ranks use one GPU.").any(),
    shape("bootstrap.unexpected", "bootstrap{func:i}: unexpected {text}", "2.23.4", "", "bootstrap.cc", "Something else than a rank connected."),
    shape("bootstrap.magic", "Socket handshake magic {magic}", "2.30.7", "", "bootstrap.cc", "The number by which a job's own connections are known."),
    shape("ras.listening", "RAS client listening socket at {addr}", "2.24.3", "", "ras/ras.cc", "The RAS service listens for its client."),
    shape("ras.bind_failed", "RAS failed to establish a client listening socket at {addr}", "2.24.3", "", "ras/ras.cc", "Another job of this host uses RAS's port; harmless."),
    shape("ras.bind_failed", "Continuing in spite of a RAS initialization error", "2.24.3", "", "ras/ras.cc", "RAS is off for this job; harmless."),
    shape("ras.peer_dead", "RAS declaring peer {!peer} as DEAD{text}", "2.24.3", "", "ras/peers.cc", "A process no longer answers: the best sign of who is gone."),
    shape("ras.keepalive", "RAS keep-alive timeout {!text} on socket connection with {!peer}", "2.24.3", "", "ras/rasnet.cc", "A process was silent for a while."),
    shape("ras.connect_timeout", "RAS connect {text} timeout {text2} on socket connection with {!peer}", "2.24.3", "", "ras/rasnet.cc", "A process cannot be reached."),
    shape("bootstrap.using", "NET : Using interface {!iface}:{ip}<", "2.2.12", "2.4.8", "net_socket.cc", "An interface and address that this rank may advertise.")
        .at(Stage::BootstrapInterface),
    shape(
        "bootstrap.resolve_failed",
        "Net : error encountered when getting address info : {!error}",
        "2.5.6",
        "",
        "misc/socket.cc",
        "The host name in NCCL_COMM_ID does not resolve on this host.",
    )
    .any(),
    shape("bootstrap.family", "{func:i}: connecting to address {addr}with family {!family:d} is neither", "2.16.2", "", "misc/socket.cc", FAMILY).any(),
    shape("bootstrap.family", "Net : connecting to address {addr}with family {!family:d} is neither", "2.10.3", "2.15.5", "misc/socket.cc", FAMILY).any(),
    shape("bootstrap.family", "Error : connecting to address with family {!family:d} is neither", "2.8.3", "2.9.9", "include/socket.h", FAMILY).any(),
];
