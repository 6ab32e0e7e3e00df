//! Stages of a communicator's initialisation and the library's own facts. Sources: `src/init.cc`, `src/graph/*.cc`.

use crate::event::shape::{Shape, Stage, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("init.driver", "cudaDriverVersion {version:d}", "2.13.4", "", "misc/cudawrap.cc", "The CUDA version of the driver: 12040 is 12.4.").at(Stage::Loaded),
    shape("init.git_version", "NCCL git version {text}", "2.29.2", "", "init.cc", "Build identity of the library.").at(Stage::Loaded),
    shape("init.affinity", "Setting affinity for GPU {dev:d} to", "2.5.6", "", "init.cc", "The rank has met its peers and binds its threads near its GPU.").at(Stage::Topology),
    shape("init.affinity", "ncclTopoGetCpuAffinity: Affinity for GPU {dev:d}", "2.27.3", "", "graph/topo.cc", "The rank has met its peers and binds its threads near its GPU.")
        .at(Stage::Topology),
    shape(
        "init.nvls_support",
        "NVLS multicast support is {!text} on dev",
        "2.17.1",
        "2.29.7",
        "transport/nvls.cc",
        "Whether NVLink SHARP can be used; not available is normal without NVSwitch.",
    )
    .at(Stage::Topology),
    shape(
        "init.mnnvl",
        "MNNVL busId {bus:x} fabric UUID {uuid} cliqueId {clique:x} state {state:d}",
        "2.20.3",
        "",
        "init.cc",
        "Multi-node NVLink membership of this GPU; state 3 is complete.",
    )
    .at(Stage::Topology),
    shape("init.mnnvl", "MNNVL {text}", "2.21.5", "", "init.cc", "Multi-node NVLink membership.").at(Stage::Topology),
    shape("init.system", "=== System : maxBw {bw:f}", "2.14.3", "", "graph/topo.cc", "The topology that this rank sees follows.").at(Stage::Topology),
    shape("init.system", "=== System : maxWidth {bw:f}", "2.6.4", "2.13.4", "graph/topo.cc", "The topology that this rank sees follows.").at(Stage::Topology),
    shape(
        "init.pattern",
        "Pattern {!pattern:d}, crossNic {cross:d}, nChannels {count:d}, {what:w} {bw:f}/{bw2:f}, type {!intra}/{!inter}, sameChannels",
        "2.6.4",
        "",
        "graph/search.cc",
        "A graph was searched; type names the path class inside and between nodes.",
    )
    .at(Stage::Graph),
    shape(
        "init.no_path",
        "Could not find a path for pattern {pattern:d}, falling back to simple order",
        "2.5.6",
        "",
        "graph/search.cc",
        "No topology could be read (VM, container); the library falls back to a simple order. Harmless by itself.",
    )
    .at(Stage::Graph),
    shape("init.ring_order", "Channel {channel:d}/{max:d} : {list}", "2.4.2", "", "init.cc", "The order of the ranks in a ring, printed by rank 0.").at(Stage::Layout),
    shape("init.ring_order", "Channel {channel:d} : {list}", "2.2.12", "", "init.cc", "The order of the ranks in a ring, printed by rank 0.").at(Stage::Layout),
    shape("init.ring_order", "Ring {channel:d} : {list}", "2.2.12", "", "init.cc", "The order of the ranks in a ring.").at(Stage::Layout),
    shape("init.trees", "Trees [0] {text}", "2.6.4", "", "init.cc", "This rank's neighbours in every tree: down/down/down->me->up.").at(Stage::Layout),
    shape("init.trees", "Tree {channel:d} : {text}", "2.4.2", "", "init.cc", "This rank's neighbours in a tree.").at(Stage::Layout),
    shape("init.p2p_chunksize", "P2P Chunksize set to {size:d}", "2.16.2", "", "init.cc", "Chunk size of point-to-point transfers.").at(Stage::Layout),
    shape("init.proxy_up", "[Proxy Service] {text}", "2.23.4", "", "proxy.cc", "The proxy thread runs.").at(Stage::Proxy),
    shape("init.proxy_up", "[Proxy Service UDS] {text}", "2.23.4", "", "proxy.cc", "The proxy's local thread runs.").at(Stage::Proxy),
    shape("init.proxy_up", "New proxy {text}", "2.12.7", "", "proxy.cc", "The proxy thread was asked for a connection.").at(Stage::Proxy),
    shape(
        "p2p.type",
        "Check P2P Type intraNodeP2pSupport {!direct:d} directMode {mode:d}",
        "2.24.3",
        "2.26.6",
        "transport/p2p.cc",
        "0 means that at least one pair of local GPUs has no direct P2P.",
    )
    .at(Stage::Proxy),
    shape(
        "p2p.type",
        "Check P2P Type isAllDirectP2p {!direct:d} directMode {mode:d}",
        "2.27.3",
        "",
        "transport/p2p.cc",
        "0 means that at least one pair of local GPUs has no direct P2P.",
    )
    .at(Stage::Proxy),
    shape(
        "init.proxy_up",
        "Connected to proxy localRank {peer:d} -> connection {text}",
        "2.12.7",
        "",
        "proxy.cc",
        "The proxy thread answers; says nothing of the connection itself.",
    )
    .at(Stage::Proxy),
    shape("init.connected", "Connected {!what}", "2.8.3", "", "transport.cc", "The connections of this kind stand.").at(Stage::Connected),
    shape("init.connected", "rank {rank:d} Connected {!what}", "2.8.3", "", "transport.cc", "The connections of this kind stand.").at(Stage::Connected),
    shape("init.tuned", "threadThresholds {text}", "2.5.6", "", "graph/tuning.cc", "The algorithm thresholds are set.").at(Stage::Tuned),
    shape(
        "init.channels",
        "{coll:d} coll channels, {collnet:d} collnet channels, {nvls:d} nvls channels, {p2p:d} p2p channels",
        "2.20.3",
        "",
        "init.cc",
        "Channel counts; they must agree on all ranks.",
    )
    .at(Stage::Tuned),
    shape("init.channels", "{coll:d} coll channels, {nvls:d} nvls channels, {p2p:d} p2p channels", "2.17.1", "2.19.4", "init.cc", "Channel counts; they must agree on all ranks.")
        .at(Stage::Tuned),
    shape("init.channels", "{coll:d} coll channels, {p2p:d} p2p channels", "2.7.3", "2.16.5", "init.cc", "Channel counts; they must agree on all ranks.").at(Stage::Tuned),
    shape("init.tuned", "CC {text}, workFifoBytes {size:d}", "2.22.3", "", "init.cc", "Confidential computing state and work queue size.").at(Stage::Tuned),
    shape("init.timings", "Init timings {text}", "2.22.3", "", "init.cc", "How long each phase of the initialisation took, in seconds.").at(Stage::InitComplete),
    shape("init.launch_mode", "Launch mode {text}", "2.5.6", "2.12.12", "enqueue.cc", "How collectives are launched; printed at the first one.").at(Stage::Collective),
    shape(
        "init.backtrace",
        "{file}:{line:d} -> {!code:d}",
        "2.5.6",
        "",
        "checks.h",
        "An error on its way up the call stack: 1 CUDA, 2 system, 3 internal, 4 argument, 5 usage, 6 remote. The warning before the first of these says why.",
    ),
    shape(
        "init.backtrace",
        "{file}:{line:d} ({func}) -> {!code:d}",
        "2.30.7",
        "",
        "checks.h",
        "An error on its way up the call stack: 1 CUDA, 2 system, 3 internal, 4 argument, 5 usage, 6 remote. The warning before the first of these says why.",
    ),
    shape("init.group_backtrace", "group.cc:{line:d} -> {!code:d}", "2.5.6", "", "group.cc", "The error reached the caller."),
    shape(
        "init.async_error",
        "commReclaim: comm {comm} (rank = {rank:d}) in abort, error {code:d}",
        "2.14.3",
        "",
        "init.cc",
        "The communicator is taken down after an error; a consequence.",
    ),
    shape(
        "init.async_error",
        "ncclCommSetAsyncError: error comm {comm} sets state {code:d}",
        "2.14.3",
        "",
        "init.cc",
        "The communicator met an error; the warning before it says which.",
    ),
    shape("init.fatal", "communicator encountered a fatal error (detected in {api})", "2.23.4", "", "init.cc", "An earlier fatal network event is reported at the next call."),
    shape(
        "abort.called",
        "socketProgressOpt: abort called",
        "2.16.2",
        "",
        "misc/socket.cc",
        "The communicator was aborted by its user (a watchdog); a consequence, never a cause.",
    ),
    shape("abort.called", "{func:i}: abort called", "2.16.2", "", "misc/socket.cc", "The communicator was aborted by its user (a watchdog); a consequence, never a cause."),
    shape(
        "env.invalid",
        "Invalid value {value} for {!name}, using default",
        "2.12.10",
        "",
        "misc/param.cc",
        "A variable has a value that the library cannot read; it uses the default.",
    ),
    shape("env.deprecated", "Warning: ENV {!name:w} is {text}", "2.30.3", "", "misc/param.cc", "The library flags a variable that has no effect."),
    shape("env.file", "NCCL_CONF_FILE {text}", "2.23.4", "", "misc/param.cc", "Settings come from a file too."),
    shape("nvml.failed", "nvmlInit{suffix}() failed: {!error}", "2.12.7", "", "misc/nvmlwrap.cc", "The driver's management library does not start on this host."),
    shape("nvml.missing", "Failed to open libnvidia-ml.so.1{error}", "2.12.7", "", "misc/nvmlwrap.cc", "The container has no NVIDIA driver libraries.").any(),
    shape("nvml.call_failed", "nvml{api:i}({args}) failed: {!error}", "2.12.7", "", "misc/nvmlwrap.cc", "A question to the driver's management library failed."),
    shape("api.argument", "{api:w} : {!what} argument is NULL", "2.5.6", "", "misc/argcheck.cc", "The program passed a null pointer to the library.").any(),
    shape("api.argument", "{api:w} : invalid {!what} {value}", "2.5.6", "", "misc/argcheck.cc", "The program passed an argument that the library refuses.").any(),
    shape("api.argument", "{api:w} : {!what} {value} is not a valid pointer", "2.5.6", "", "misc/argcheck.cc", "The program passed a host or foreign pointer as a device buffer.")
        .any(),
    shape("api.argument", "Invalid rank requested : {rank:d}/{count:d}", "2.5.6", "", "init.cc", "The program asked for a rank that does not exist.").any(),
    shape(
        "api.argument",
        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER",
        "2.14.3",
        "",
        "init.cc",
        "The program passed a configuration that it did not initialise, or that is of another version of the library.",
    )
    .any(),
    shape("api.argument", "Invalid config {!what} attribute value {value:d}", "2.14.3", "", "init.cc", "The program passed a communicator configuration that the library refuses.")
        .any(),
    shape(
        "api.argument",
        "{api:w} : {!what} buffer {text} allocated on device {dev:d} mismatchs with NCCL device {want:d}",
        "2.5.6",
        "",
        "misc/argcheck.cc",
        "A buffer lies on another GPU than the communicator's.",
    )
    .any(),
    shape("api.destroyed", "comm {comm} has already been destroyed", "2.5.6", "", "init.cc", "The program uses a communicator after its end.").any(),
    shape("api.racing", "Fatal: host threads racing to launch NCCL on same device.", "2.26.2", "", "enqueue.cc", "Two threads of the program use one device at the same time.")
        .any(),
    shape("tuning.no_algorithm", "No algorithm/protocol available for function {text}", "2.30.3", "", "enqueue.cc", "NCCL_ALGO or NCCL_PROTO excludes everything that would work.")
        .any(),
    shape(
        "tuning.no_algorithm",
        "No algorithm/protocol nor symKernelId available for function {text}",
        "2.31.2",
        "",
        "tuning/tuning.cc",
        "NCCL_ALGO or NCCL_PROTO excludes everything that would work.",
    )
    .any(),
    shape("tuning.no_algorithm", "Error : no algorithm/protocol available{text}", "2.5.6", "", "enqueue.cc", "NCCL_ALGO or NCCL_PROTO excludes everything that would work.").any(),
    shape(
        "version.too_old",
        "NCCL library is not backwards compatible. This application was compiled with NCCL version {!built}, but is running with NCCL library version {!runs:w}",
        "2.30.3",
        "",
        "dev_runtime.cc",
        "The program's own kernels were built for a library that the loaded one no longer serves.",
    )
    .any(),
    shape("version.too_old", "NCCL library is too old. {text}", "2.29.2", "", "init.cc", "The program was built for a newer library than the one that was loaded.").any(),
    shape(
        "arch.shared_memory",
        "ncclMaxSharedMem {size} exceeds device/fn maxSharedMem {max}",
        "2.21.5",
        "",
        "enqueue.cc",
        "The library's kernels ask for more shared memory than this GPU gives them: the library does not know this GPU.",
    )
    .any(),
    shape("tuning.matrix", "Enabled NCCL Func/Proto/Algo Matrix:{text}", "2.24.3", "", "graph/tuning.cc", "Which algorithms and protocols may be chosen."),
    shape(
        "version.too_old",
        "NCCL library version is too old. {text}",
        "2.29.2",
        "2.29.7",
        "dev_runtime.cc",
        "The program was built for a newer library than the one that was loaded.",
    )
    .any(),
    shape(
        "version.too_old",
        "The application was compiled with too old version of NCCL. {text}",
        "2.29.7",
        "",
        "dev_runtime.cc",
        "The program has to be rebuilt for the library that was loaded.",
    )
    .any(),
    shape(
        "collective.suspected",
        "Your program may be hanging, this may be caused by a collective mismatch around rank {!peer_rank:d}",
        "2.5.6",
        "2.7.6",
        "init.cc",
        "The library suspects that this rank called another collective.",
    )
    .any(),
    shape(
        "collective.symmetric_mismatch",
        "Coll {!coll:w} size {size:d} symmetric registration check failed on rank {rank:d}: {!error}",
        "2.29.7",
        "",
        "misc/argcheck.cc",
        "Ranks passed differently registered buffers to one collective.",
    )
    .any(),
    shape("abort.called", "Comm {comm} is in abort state", "2.17.1", "", "proxy.cc", "The communicator was aborted by its user (a watchdog); a consequence, never a cause."),
    shape(
        "init.destroy_error",
        "commDestroySync: comm {comm} rank {rank:d} sync {stream:w} error {code:d}",
        "2.14.3",
        "",
        "init.cc",
        "A communicator could not be ended cleanly because the GPU had failed before; a consequence.",
    ),
];
