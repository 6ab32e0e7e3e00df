//! Messages of RCCL's own of the releases with ROCm 6.4 and later (2.22 … 2.30). Sources: `rccl/src/**` of ROCm/rocm-systems; the
//! versions are those in which a message was first seen.

use crate::event::shape::{Shape, Stage, shape};

const INIT: &str = "rccl/src/init.cc";
const ROCR: &str = "rccl/src/misc/rocmwrap.cc";
const SMI: &str = "rccl/src/misc/amdsmi_wrap.cc";
const RSMI: &str = "rccl/src/misc/alt_rsmi.cc";
const WRAP: &str = "rccl/src/rccl_wrap.cc";
const IB: &str = "rccl/src/transport/net_ib.cc";
const IB_ROCM: &str = "rccl/src/transport/net_ib_rocm.cc";
const REFUSED: &str = "RCCL ends here: on MI300 and MI350 it does not run with this pair of HIP runtime and GPU firmware unless the variable is set.";
const NO_SMI: &str = "RCCL cannot ask the driver for the GPUs and their links; in containers /sys/class/kfd is often hidden.";
const NO_ROCR: &str = "RCCL cannot use the ROCm runtime library that it found, so it does without DMA-BUF.";
const DMABUF: &str = "Whether DMA-BUF is available. It matters for direct transfers between NIC and GPU only.";
const PEER_MEMORY: &str = "A module of the NIC's driver lets the NIC reach the GPU's memory.";
const FATAL: &str = "An RDMA device reported a fatal event before; the call that follows says so and fails. The event itself stands further up.";
const CUMEM: &str = "RCCL does without the cuMem interface here; it shares GPU memory by IPC handles. Harmless.";
const OLD_CALL: &str = "The program uses an interface that will go. Harmless.";
const NOTE: &str = "A note of the library on its own build or tuning. Harmless.";
const OVERRIDE: &str = "A variable asks for an algorithm or protocol that RCCL does not have for this collective.";
const MERGED: &str = "Two network cards that lie apart are used as one. It works, and may be slow.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    // What ends the start.
    shape("rocm.refused", "Please set HSA_NO_SCRATCH_RECLAIM=1 and rerun", "2.27.7", "2.28.3", INIT, REFUSED).any(),
    shape(
        "rocm.no_kernel",
        "Build flag HIP_HOST_UNCACHED_MEMORY must be set to avoid memory corruption on {gpu:w}",
        "2.27.7",
        "",
        INIT,
        "This build of RCCL does not support the GPU: it lacks an option without which the GPU's memory would be corrupted, and refuses to run.",
    )
    .any(),
    shape(
        "rocm.no_kernel",
        "{func:i}: unsupported architecture ({arch}) for collective",
        "2.28.3",
        "",
        "rccl/src/enqueue.cc",
        "This build of RCCL has no such collective for the GPU's architecture.",
    )
    .any(),
    shape(
        "rccl.not_built",
        "{func:i}: unsupported collective. Please ensure the collective has been enabled in build",
        "2.20.5",
        "",
        "rccl/src/enqueue.cc",
        "This build of RCCL holds no kernel for the collective, the type and the operation that were asked for.",
    )
    .any(),
    shape(
        "api.invalid_stream",
        "Application is trying to use an invalidated stream to launch RCCL kernel",
        "2.27.7",
        "",
        "rccl/src/include/debug.h",
        "The program captures a graph, and the capture was broken off by an earlier error or a call that it does not allow.",
    )
    .any(),
    shape("init.fatal", "RCCL encountered a communication fatal error (detected in {api})", "2.28.3", "", IB_ROCM, FATAL).any(),
    shape("init.fatal", "RCCL cannot recover from this network failure and now exiting", "2.28.3", "", IB_ROCM, FATAL).any(),
    shape(
        "rccl.fifo_wait",
        "Waiting for work FIFO to become available.",
        "2.27.7",
        "",
        "rccl/src/enqueue.cc",
        "Rank 0 has enqueued more work than the GPU takes away: very many small operations, or the GPU stands still.",
    ),
    // Channels and links.
    shape(
        "init.channels",
        "comm:{comm}, nRanks:{nranks:d}, nNodes:{nodes:d}, coll channels:{coll:d} collnet channels:{collnet:d}, nvls channels:{nvls:d}, p2p channels:{p2p:d}",
        "2.27.7",
        "",
        INIT,
        "Channel counts; they must agree on all ranks.",
    )
    .at(Stage::Tuned),
    shape("init.rings", "[RINGS] {list}", "2.20.5", "", "rccl/src/graph/connect.cc", "The order of the ranks in the rings.").at(Stage::Layout),
    shape("p2p.over_net", "RCCL enabled same node P2P over network", "2.8.4", "", INIT, "GPUs of one node may exchange data over the network cards."),
    shape("p2p.over_net_off", "RCCL force disabled same node P2P over network", "2.8.4", "", INIT, "GPUs of one node never exchange data over the network cards."),
    // Versions and what RCCL found.
    shape("rccl.kernel_version", "Kernel version: {kernel:w}", "2.17.1", "", INIT, "The kernel of this host.").at(Stage::Loaded),
    shape("rccl.kernel_version", "Kernel version {kernel:w}", "2.30.4", "", ROCR, "The kernel of this host.").at(Stage::Loaded),
    shape("rccl.smi", "rocm_smi_lib: version {version}", "2.9.9", "2.28.3", "rccl/src/misc/rocm_smi_wrap.cc", "RCCL asks the driver by this library."),
    shape("rccl.smi", "amdsmi_lib: version {version}", "2.28.3", "", SMI, "RCCL asks the driver by this library."),
    shape("rccl.smi", "initialized internal alternative rsmi functionality", "2.20.5", "", SMI, "RCCL reads the GPUs and their links from /sys/class/kfd itself."),
    shape("rccl.wsl", "Not using {library:w} due to WSL2 environment detected", "2.20.5", "", SMI, "RCCL runs under WSL2."),
    shape(
        "rccl.node",
        "[node_id = {!node:d}; gpu_id = {gpu:d}; unique_id = {id:d}; location_id = {location:d}; bdf = {bdf:d}",
        "2.20.5",
        "",
        RSMI,
        "A GPU that the driver knows; bdf is its PCI address as a number.",
    ),
    shape("ib.count", "RCCL: Detected {count:d} IB devices", "2.30.4", "", WRAP, "How many RDMA devices this process sees."),
    shape(
        "ib.no_libibverbs",
        "Could not open libibverbs.so",
        "2.30.4",
        "",
        "rccl/src/misc/ibvsymbols.cc",
        "rdma-core is not in the image: RDMA cannot be used. Normal on a single machine.",
    )
    .at(Stage::NetDevices),
    // The ROCm runtime and the driver.
    shape("rccl.runtime", "Using ROCr runtime at {path:w}", "2.30.4", "", ROCR, "The ROCm runtime library that RCCL loaded."),
    shape("rccl.runtime_missing", "Failed to find ROCm runtime library in {path}", "2.13.4", "", ROCR, NO_ROCR),
    shape("rccl.runtime_missing", "Failed to load ROCr missing symbol {symbol:w}", "2.13.4", "", ROCR, NO_ROCR),
    shape("rccl.runtime_missing", "pfn_hsa_system_get_info failed with {code:d}", "2.13.4", "", ROCR, NO_ROCR),
    shape("rocm.smi_failure", "AMD SMI failure: {!error} at line:", "2.28.3", "", SMI, NO_SMI).any(),
    shape("rocm.smi_failure", "amdsmi_lib: {text} device index not found", "2.28.3", "", SMI, NO_SMI).any(),
    shape("rocm.smi_failure", "amdsmi_lib: device index {index:d} not found", "2.30.4", "", SMI, NO_SMI).any(),
    shape("rocm.smi_failure", "amd-smi could not find processor handle for {which}: {index:d}", "2.28.3", "", SMI, NO_SMI).any(),
    shape("rocm.smi_failure", "Failed to open libamd_smi.so", "2.30.4", "", SMI, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not initialize amd-smi", "2.28.3", "", WRAP, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not initialize rocm-smi", "2.28.3", "", WRAP, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not query firmware info using amd-smi", "2.28.3", "", WRAP, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not query firmware info using rocm-smi", "2.28.3", "", WRAP, NO_SMI).any(),
    shape("rocm.smi_failure", "ARSMI_lib: {text} device index not found", "2.20.5", "2.28.3", "rccl/src/misc/rocm_smi_wrap.cc", NO_SMI).any(),
    shape("rocm.smi_failure", "Error reading link properties files", "2.20.5", "", RSMI, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not read node # {node:d}", "2.20.5", "", RSMI, NO_SMI).any(),
    shape("rocm.smi_failure", "Could not determine GPU id of node # {node:d}", "2.20.5", "", RSMI, NO_SMI).any(),
    // Direct transfers between NIC and GPU.
    shape("rocm.dmabuf_on", "DMA_BUF Support is force enabled", "2.27.7", "", ROCR, DMABUF).any(),
    shape("rocm.dmabuf_on", "NCCL_CUMEM_ENABLE is set but NCCL_DMABUF_ENABLE is not. Forcefully enabling DMA-BUF", "2.30.4", "", ROCR, DMABUF).any(),
    shape("rocm.dmabuf_off", "DMA_BUF_SUPPORT Failed: missing kernel symbols", "2.30.4", "", ROCR, DMABUF).any(),
    shape(
        "rccl.dmabuf_unread",
        "Could not open kernel conf file",
        "2.17.1",
        "",
        ROCR,
        "The kernel's configuration is not in this container, so RCCL cannot see whether DMA-BUF works; before 2.30 it then does without.",
    ),
    shape("rccl.kernel_option", "CONFIG_{!option:i}=y in {path:w}", "2.17.1", "", ROCR, "The kernel has an option that DMA-BUF or P2P between GPUs needs."),
    shape("rocm.gdr_present", "Found /sys/kernel/memory_peers/amdkfd/version", "2.21.5", "2.28.3", IB, PEER_MEMORY).any(),
    shape("rocm.gdr_present", "Found /sys/memory_peers/amdkfd/version", "2.21.5", "2.28.3", IB, PEER_MEMORY).any(),
    shape("rocm.gdr_present", "Found peer memory client {path:w}", "2.30.4", "", "rccl/src/misc/gdr_peermem.cc", PEER_MEMORY).any(),
    shape(
        "rocm.gdr_missing",
        "No peer memory client found, GDR via peermem disabled",
        "2.30.4",
        "",
        "rccl/src/misc/gdr_peermem.cc",
        "The NIC's driver has no module that reaches the GPU's memory. Direct transfers still go over DMA-BUF where that is there.",
    )
    .any(),
    shape(
        "rccl.gdr_forced",
        "RCCL_FORCE_ENABLE_GDRDMA = 1, so explicitly setting",
        "2.21.5",
        "",
        IB,
        "Direct transfers are switched on by hand, whether the drivers can do it or not.",
    ),
    shape("rccl.gdr_unread", "Could not open /proc/kallsyms", "2.21.5", "", IB, "RCCL cannot see here whether the NIC's driver reaches the GPU's memory."),
    shape("gdr.all", "GDR is available on all GPUs", "2.8.4", "", "rccl/src/graph/paths.cc", "Every GPU of this node has a network card near enough for direct transfers."),
    shape("ib.reg_mr", "Failed to export DMA BUF", "2.27.7", "", IB, "GPU memory could not be handed to the network card by DMA-BUF.").any(),
    // Network cards.
    shape("benign.ionicdv", "NET/IB : Failed to open ionicdv symbols", "2.28.3", "", IB_ROCM, "The library of AMD's network cards is missing; it only matters with such cards."),
    shape(
        "benign.ionicdv",
        "Failed to open libionic.so",
        "2.28.3",
        "",
        "rccl/src/misc/ionicdvsymbols.cc",
        "The library of AMD's network cards is missing; it only matters with such cards.",
    ),
    shape("benign.ionicdv", "dlvsym loaded successfully for {symbol:w}", "2.28.3", "", "rccl/src/misc/ionicdvsymbols.cc", "The library of AMD's network cards was loaded."),
    shape("ib.ainic", "NET/IB : AINIC RoCEv2 optimizations enabled", "2.28.3", "", IB_ROCM, "The network cards are AMD's."),
    shape("ib.not_merged", "NET/IB : Skipping makeVDevice", "2.27.7", "", IB, "The ports of a network card are used one by one. Harmless."),
    shape("ib.merged_apart", "NET/IB : Merging NICs across {!what} ({text}). {text2}", "2.28.3", "", IB_ROCM, MERGED),
    // Notes in the shape of warnings.
    shape("benign.cumem", "CUMEM not supported prior to ROCm", "2.27.7", "", "rccl/src/include/alloc.h", CUMEM),
    shape("benign.cumem", "cuMem support requires {what}", "2.30.4", "", ROCR, CUMEM),
    shape("benign.cumem", "NCCL_CUMEM_ENABLE=1 is set but cuMem VMM APIs are unavailable in this build", "2.30.4", "", ROCR, CUMEM),
    shape("benign.fabric", "RCCL_USE_AMD_SMI_LIB not set, but HIP_FABRIC_API is defined", "2.30.4", "", SMI, "It matters only to GPUs that are linked across nodes. Harmless."),
    shape("benign.tuning", "LL cutoff points not detected for a supported arch {arch:w}", "2.27.7", "", WRAP, NOTE),
    shape("benign.tuning", "RCCL P2P attempt to set P2P net chunk size for unsupported arch: {arch:w}", "2.27.7", "", WRAP, NOTE),
    shape("benign.mscclpp", "MSCCL++: Cannot enable MSCCL++; environment is not MSCCL compatible", "2.21.5", "", INIT, NOTE),
    shape("benign.mscclpp", "MSCCL++: Feature not enabled. ENABLE_MSCCLPP must be defined at compile-time", "2.21.5", "", INIT, NOTE),
    shape(
        "benign.msccl",
        "MSCCL Internal Scheduler:~Unable to find algorithm files in {path:w}",
        "2.20.5",
        "2.28.3",
        "rccl/src/misc/msccl/msccl_lifecycle.cc",
        "Tuned algorithms are missing beside the library; it does without.",
    ),
    shape("benign.deprecated", "NPKIT is deprecated", "2.28.3", "", INIT, OLD_CALL),
    shape("benign.deprecated", "NPKit is deprecated", "2.28.3", "", "rccl/src/misc/npkit.cc", OLD_CALL),
    shape("benign.deprecated", "MSCCL is deprecated", "2.28.3", "", INIT, OLD_CALL),
    shape("benign.deprecated", "Please note that {api:w} is deprecated", "2.28.3", "", "rccl/src/misc/api_trace.cc", OLD_CALL),
    shape("benign.deprecated", "msccl{api:i} is deprecated. Function call has no effect", "2.27.7", "", "rccl/src/msccl.cc", OLD_CALL),
    shape("benign.profiler", "[rocprofiler-sdk-rccl][{pid}] rocprofiler-register {text}", "2.21.5", "", "rccl/src/misc/api_trace.cc", "Whether a profiler listens. Harmless."),
    shape("benign.proxy_trace", "commFree() ProxyTrace", "2.28.3", "", INIT, "What the proxy had done when the communicator ended. Harmless."),
    shape("benign.proxy_trace", "ProxyTrace: ", "2.27.7", "2.27.7", INIT, "What the proxy had done when the communicator ended. Harmless."),
    // Settings that RCCL does not take.
    shape("env.deprecated", "{!name:w} set by environment is ignored due to {why}", "2.21.5", "", "rccl/src/graph/connect.cc", "The library flags a variable that has no effect."),
    shape("tuning.override", "Failed to force unsupported {!what:w} {!value:w} for function {coll:w} with datatype {type:w}", "2.27.7", "", WRAP, OVERRIDE).any(),
    shape("tuning.override", "Invalid algo or protocol string passed {!value}", "2.27.7", "", WRAP, OVERRIDE).any(),
];
