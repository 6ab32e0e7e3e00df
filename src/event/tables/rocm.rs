//! Rows of AMD: RCCL's own warnings and traces, and the ROCm runtime's last words on stderr.

use super::line;
use crate::event::shape::{Shape, shape};

const INIT: &str = "rccl/src/init.cc";
const P2P: &str = "rccl/src/transport/p2p.cc";
const QUEUE: &str = "clr/rocclr/device/rocm/rocdevice.cpp";
const ROCR: &str = "rocr/core/runtime/runtime.cpp";
const TRACE: &str = "rccl/src/misc/colltrace.cc";
const IOMMU: &str = "The kernel command line lacks this word. RCCL only searches the text, so sound machines print it too; it supports other evidence and proves nothing alone.";
const APERTURE: &str = "A kernel on the GPU used an address outside every aperture, for instance a bad or never mapped pointer. Does not by itself point to the copy engine.";
const ABORT: &str = "The runtime ends the process because a GPU queue failed with this status.";
const FAULT: &str = "A kernel on the GPU touched memory that is not mapped or not allowed; an ECC reason means bad hardware.";
const IPC: &str = "Sharing GPU memory between two processes failed. RCCL has no probe for it and gives up instead of using host memory.";
const STATE: &str = "The first collective's kernel could not start, known from GPUs in slots without PCIe atomics. Independent of P2P.";
const NO_KERNEL: &str = "The library was built without code for this GPU.";
const SMI: &str = "RCCL cannot read the topology from the driver; in containers /sys/class/kfd is often hidden.";
const DMABUF: &str = "Whether DMA-BUF is available. It matters for direct transfers between NIC and GPU only.";
const VERSIONS: &str = "Versions and path of the AMD libraries of this process. Different paths on two ranks mean a mixed installation.";
const GPU: &str = "The GPU's model or architecture.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    // RCCL's own.
    line("rocm.missing_iommu_pt", "*Missing \"iommu=pt\" from kernel command line which can lead to system instab", INIT, IOMMU),
    shape("rocm.missing_amd_iommu", "*Missing \"amd_iommu=on\" from kernel command line which can lead to system instab", "2.16.5", "2.17.1", INIT, IOMMU).any(),
    line(
        "rocm.missing_fine_grain",
        "*Missing \"HSA_FORCE_FINE_GRAIN_PCIE=1\" from environment which can lead to low RCCL performance",
        INIT,
        "On such builds P2P over PCIe needs this variable; without it RCCL drops P2P silently.",
    ),
    line("rocm.numa_balancing", "*NUMA auto balancing enabled which can lead to variability in the RCCL performance", INIT, "A note on performance. Harmless."),
    line(
        "rocm.scratch_reclaim",
        "HSA_NO_SCRATCH_RECLAIM=1 must be set to avoid performance degradation with the current HIP configuration. (Runtime version:{runtime:d}, GPU Firmware version:{firmware:d})",
        INIT,
        "The GPU firmware is older than this RCCL wants, and the variable that makes up for it is not set. RCCL 2.27 and 2.28 end here; later ones go on, slower.",
    ),
    line("rocm.mscclpp_off", "MSCCL++: Cannot enable MSCCL++ on {!arch:w} architecture", INIT, "Harmless."),
    line("rocm.ipc_failed", "*hipIpcGetMemHandle failed : {!text}", P2P, IPC),
    line("rocm.ipc_failed", "*hipIpcOpenMemHandle failed : {!text}", P2P, IPC),
    line("rocm.ipc_failed", "*HIP failure{}'invalid device pointer'", P2P, IPC),
    line("rocm.illegal_state", "*HIP failure{}'the operation cannot be performed in the present state'", "rccl/src/enqueue.cc", STATE),
    line("rocm.illegal_state", "*Pcie atomics not enabled, hostcall not supported", "clr/rocclr", STATE),
    line("rocm.illegal_state", "*HIP error: the operation cannot be performed in the present state", "c10/hip/HIPException.cpp", STATE),
    line("rocm.no_kernel", "*HIP failure{}'invalid device function'", "rccl/src/enqueue.cc", NO_KERNEL),
    line("rocm.no_kernel", "*HIP failure{}'no kernel image is available for execution on the device'", "rccl/src/enqueue.cc", NO_KERNEL),
    line("rocm.no_kernel", "*HIP error: invalid device function", "c10/hip/HIPException.cpp", NO_KERNEL),
    line("rocm.no_kernel", "*hipErrorNoBinaryForGpu{text}", "hip", NO_KERNEL),
    line(
        "rocm.topology_path",
        "*Failed to find reverse path from remNode {node:d}/{id:x} nlinks {links:d} to node {to:w}",
        "rccl/src/graph/paths.cc",
        "RCCL cannot make sense of the links between the GPUs, for instance when only some of a fully connected set are visible.",
    ),
    line("rocm.smi_failure", "ARSMI failure{text}", "rccl/src/misc/rocm_smi_wrap.cc", SMI),
    line("rocm.smi_failure", "ROCm SMI init failure{text}", "rccl/src/misc/rocm_smi_wrap.cc", SMI),
    line("rocm.smi_failure", "rocm_smi_lib: {text} device index not found", "rccl/src/misc/rocm_smi_wrap.cc", SMI),
    line("rocm.smi_failure", "*Failed to open topo/nodes directory", "rccl/src/misc/archinfo.cc", SMI),
    line("rocm.dmabuf_off", "Dmabuf feature disabled without NCCL_DMABUF_ENABLE=1", "rccl/src/misc/rocmwrap.cc", DMABUF),
    line("rocm.dmabuf_off", "DMA_BUF_SUPPORT Failed due to OS kernel support", "rccl/src/misc/rocmwrap.cc", DMABUF),
    line("rocm.dmabuf_off", "Current version of ROCm does not support dmabuf feature", "rccl/src/misc/rocmwrap.cc", DMABUF),
    line(
        "rocm.dmabuf_kernel",
        "CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA should be set for DMA_BUF in {path:w}",
        "rccl/src/misc/rocmwrap.cc",
        "The kernel lacks options for DMA-BUF; without CONFIG_PCI_P2PDMA an upstream kernel has no P2P between GPUs either.",
    ),
    line("rocm.dmabuf_on", "DMA_BUF Support Enabled", "rccl/src/misc/rocmwrap.cc", DMABUF),
    line(
        "rocm.gdr_missing",
        "GDRDMA not enabled. Could not find memory_peers directory or peer_memory symbol",
        INIT,
        "Direct transfers between NIC and GPU are not available on this node.",
    ),
    line("rocm.gdr_present", "Found /sys/kernel/mm/memory_peers/amdkfd/version", INIT, "Direct transfers between NIC and GPU are available on this node."),
    line("rocm.gdr_present", "Found ib_register_peer_memory_client in /proc/kallsyms", INIT, "Direct transfers between NIC and GPU are available on this node."),
    // The kernel collective trace.
    line("rocm.kernel_launch", "## [~{time:f}] [{rank:d}:{channel:d}] {op:x} KL HWID {hw:w} {func:w}", TRACE, "The collective's kernel started on this channel."),
    line("rocm.kernel_collective", "## [~{time:f}] [{rank:d}:{channel:d}] {op:x} CE", TRACE, "A further collective began within the running kernel."),
    line("rocm.kernel_end", "## [~{time:f}] [{rank:d}:{channel:d}] {op:x} KE", TRACE, "The collective's kernel ended. A rank with a start and no end stands in the kernel."),
    line("rocm.kernel_abort", "## [~{time:f}] [{rank:d}:{channel:d}] {op:x} Abort", TRACE, "The kernel was told to abort."),
    // Versions.
    line("rocm.version_extra", "HIP version~: {hip}", INIT, VERSIONS),
    line("rocm.version_extra", "ROCm version~: {rocm}", INIT, VERSIONS),
    line("rocm.version_extra", "Librccl path~: {!path}", INIT, VERSIONS),
    line("rocm.version_extra", "Hostname~: {host:w}$", INIT, VERSIONS),
    line("rocm.version_extra", "ROCr version {rocr:w}", INIT, VERSIONS),
    line("rocm.version_extra", "Hipruntime version: {hip}, firmware version: {firmware:d}", INIT, VERSIONS),
    // The runtime.
    line(
        "rocm.aperture_violation",
        "*aborting with error : {!code:i}MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: {!status:w}",
        QUEUE,
        APERTURE,
    ),
    line("rocm.aperture_violation", "*MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address", QUEUE, APERTURE),
    line("rocm.queue_abort", "*aborting with error : {!code}: {text} code: {!status:w}", QUEUE, ABORT),
    line("rocm.queue_abort", "*Aborting with error : {!code}: {text} Code: {!status:w}", QUEUE, ABORT),
    line("rocm.queue_abort", "*aborting with error : {!code}", QUEUE, ABORT),
    line("rocm.memory_fault", "*Memory access fault by GPU node-{node:d} (Agent handle: {agent}) on address {address}. Reason: {!reason}.", ROCR, FAULT),
    line("rocm.memory_fault", "*Memory access fault by GPU node-{node:d} on address {address}. Reason: {!reason}.", ROCR, FAULT),
    line(
        "rocm.hw_exception",
        "*HW Exception by GPU node-{node:d} (Agent handle: {agent}) reason :{!reason}",
        ROCR,
        "The driver reset the GPU or found a hardware error. `GPU Hang` is a reset of the GPU, not a wait of RCCL.",
    ),
    // Which GPU.
    line("rocm.gpu_name", "~Marketing Name:~AMD Instinct {!name}", "rocminfo", GPU),
    line("rocm.gpu_name", "~Marketing Name:~AMD Radeon {!name}", "rocminfo", GPU),
    line("rocm.gpu_name", "gfx{!gfx:x}$", "rocminfo", "The GPU's architecture: `gfx` and this value."),
    line("rocm.gpu_name", "~Name:~gfx{!gfx:x}$", "rocminfo", "The GPU's architecture: `gfx` and this value."),
    line("rocm.gpu_name", "~Device {index:d}: AMD {!name}, gfx{!gfx:x} (", "ggml", "The GPU's model, and its architecture: `gfx` and this value."),
    line("rocm.gpu_name", "*gcnArchName='gfx{!gfx:x}", "torch", "The GPU's architecture: `gfx` and this value."),
    line("rocm.gpu_name", "GPU[{index:d}]~: Card Series:~{!name}", "rocm-smi", GPU),
    line("rocm.gpu_name", "GPU[{index:d}]~: GFX Version:~gfx{!gfx:x}", "rocm-smi", "The GPU's architecture: `gfx` and this value."),
];
