//! P2P, shared memory, NVLS. Sources: `src/transport/{p2p,shm,nvls}.cc`, `src/graph/paths.cc`, `src/misc/shmutils.cc`.

use super::line;
use crate::event::shape::{Shape, shape};

const SHM: &str = "A shared memory segment could not be made; 'No space left on device' means that /dev/shm is too small.";
const NVLS: &str = "NVLink SHARP memory could not be bound: Fabric Manager or NVSwitch set-up.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape(
        "p2p.disabled",
        "P2P is disabled between connected GPUs {!dev:d} and {!peer:d}.",
        "2.12.7",
        "",
        "graph/paths.cc",
        "The driver says that these GPUs cannot reach each other; shared memory is used instead. It runs, slower; this is no hang.",
    ),
    shape(
        "p2p.disabled_nvlink",
        "P2P is disabled between NVLINK connected GPUs {!dev:d} and {!peer:d}.",
        "2.12.7",
        "",
        "graph/paths.cc",
        "NVLink is there but does not work: hardware or Fabric Manager.",
    )
    .any(),
    shape(
        "p2p.not_enabled",
        "Could not enable P2P between dev {!dev:d}(={bus}) and dev {!peer:d}(={bus2})",
        "2.6.4",
        "",
        "transport/p2p.cc",
        "The runtime says that these GPUs cannot reach each other; shared memory is used instead.",
    ),
    shape(
        "p2p.query_failed",
        "peer query failed between dev {!dev:d}(={bus}) and dev {!peer:d}(={bus2})",
        "2.5.6",
        "",
        "transport/p2p.cc",
        "The runtime could not say whether these GPUs reach each other.",
    ),
    shape("p2p.no_ipc", "Legacy IPC not supported{text}", "2.12.7", "", "transport/p2p.cc", "CUDA IPC does not work here (container, MIG)."),
    shape("p2p.alloc_unsupported", "P2P not supported between GPU{dev:d} and GPU{peer:d}", "2.24.3", "", "allocator.cc", "These GPUs cannot reach each other."),
    shape("p2p.peer_failed", "failed to peer with device {!peer:d}(={bus}): {code:d} {!error}", "2.5.6", "", "transport/p2p.cc", "Peer access could not be switched on.").any(),
    shape("p2p.ipc_failed", "failed to open CUDA IPC handle : {code:d} {!error}", "2.5.6", "2.7.8", "transport/p2p.cc", "The peer's memory could not be opened.").any(),
    shape("p2p.ipc_failed", "cudaIpc{!what:w} failed : {!error}", "2.5.6", "", "transport/p2p.cc", "Memory could not be shared with the peer.").any(),
    shape("rocm.ipc_failed", "hipIpc{!what:w} failed : {!error}", "", "", "RCCL transport/p2p.cc", "Memory could not be shared with the peer GPU.").any(),
    shape(
        "p2p.uds_failed",
        "UDS: {op} data over socket {name} failed : {!error}",
        "2.17.1",
        "",
        "misc/ipcsocket.cc",
        "The local peer cannot be reached over its local socket: it is gone, or in another network namespace.",
    )
    .any(),
    shape(
        "p2p.uds_failed",
        "UDS: {op} data over socket {name} failed : {!error} ({errno:d})",
        "2.17.1",
        "",
        "misc/ipcsocket.cc",
        "The local peer cannot be reached over its local socket: it is gone, or in another network namespace.",
    )
    .any(),
    shape("shm.error", "Error while {!op} shared memory segment {path} (size {size:d}), error: {!error} ({errno:d})", "2.19.1", "", "misc/shmutils.cc", SHM).any(),
    shape("shm.error", "Error while {!op} shared memory segment {path} (size {size:d})", "2.5.6", "2.18.6", "misc/shmutils.cc", SHM).any(),
    shape("shm.error", "Error: failed to extend {path} to {size:d} bytes, error: {!error} ({errno:d})", "2.19.1", "", "misc/shmutils.cc", SHM).any(),
    shape("shm.error", "Error: failed to extend {path} to {size:d} bytes", "2.12.7", "2.18.6", "misc/shmutils.cc", SHM).any(),
    shape("shm.error", "Call to posix_fallocate failed~: {!error}", "2.5.6", "2.11.4", "include/shm.h", SHM).any(),
    shape("shm.error", "Unable to allocate shared memory segment{error}", "2.5.6", "", "include/shm.h", SHM).any(),
    shape("shm.error", "Call to shm_open failed~: {!error}", "2.5.6", "", "include/shm.h", "A shared memory segment could not be opened.").any(),
    shape(
        "shm.retry",
        "fallocate: Failed to extend {path} to {size:d} bytes, error: {!error} ({errno:d}) - retrying",
        "2.22.3",
        "",
        "misc/shmutils.cc",
        "A shared memory segment could not be made; it is tried again.",
    ),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment {path} (size -{size:d})",
        "2.5.6",
        "2.18.6",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment {path} (size -{size:d}), error: {!error} ({errno:d})",
        "2.19.1",
        "",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment /dev/shm/nccl- (size {size:d})",
        "2.5.6",
        "2.18.6",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment /dev/shm/nccl- (size {size:d}), error: {!error} ({errno:d})",
        "2.19.1",
        "",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment /dev/shm/nccl- (size -{size:d})",
        "2.5.6",
        "2.18.6",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "shm.bad_size",
        "Error while {!op} shared memory segment /dev/shm/nccl- (size -{size:d}), error: {!error} ({errno:d})",
        "2.19.1",
        "",
        "misc/shmutils.cc",
        "The two ends disagree on a segment: different settings on the two ranks.",
    )
    .any(),
    shape(
        "benign.cumem_host",
        "cuMem host allocations do not appear to be working{text}",
        "2.26.3",
        "",
        "init.cc",
        "The container runtime disables NUMA; /dev/shm is used. Harmless by itself.",
    ),
    shape("nvls.bind_failed", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size {size:d} : CUDA error {code:d} '{!error}'", "2.27.3", "", "transport/nvls.cc", NVLS)
        .any(),
    shape("nvls.hint", "This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches{text}", "2.27.3", "", "transport/nvls.cc", NVLS).any(),
    shape("nvls.create_failed", "Failed to create NVLink SHARP (NVLS) {text} CUDA error {code:d} '{!error}'", "2.27.3", "", "transport/nvls.cc", NVLS).any(),
    shape("nvls.comm", "NVLS comm {comm} headRank {rank:d} nHeads {count:d}", "2.18.1", "", "transport/nvls.cc", "NVLink SHARP is used."),
    shape("mnnvl.unsupported", "MNNVL {text}not supported on this system{error}", "2.20.3", "2.26.6", "mnnvl.cc", "Multi-node NVLink is there but IMEX is not set up.").any(),
    shape("mnnvl.unsupported", "MNNVL {text}not working on this system{error}", "2.27.3", "", "mnnvl.cc", "Multi-node NVLink is there but IMEX is not set up.").any(),
    line(
        "p2p.verification_error",
        "Verification error @ element {at:d}: val = {got}, ref = {want}",
        "cuda-samples simpleP2P",
        "A test of the direct path between two GPUs read other data than was written.",
    ),
    line("p2p.verification_error", "*p2p: read/write mismatch{text}", "NCCL diagnostics", "A test of the direct path between two GPUs read other data than was written."),
    shape("topo.dump", "NCCL_TOPO_DUMP_FILE{text}", "2.5.6", "", "graph/topo.cc", "The topology is written to a file."),
    shape(
        "nvls.bind_failed",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size {size:d} at MC group {group} offset {offset:d} : CUDA error {code:d} '{!error}'",
        "2.32.3",
        "",
        "transport/nvls.cc",
        NVLS,
    )
    .any(),
];
