//! Rows of kernel logs (dmesg, journal) that stand beside an NCCL log.

use super::line;
use crate::event::shape::Shape;

const IOMMU: &str = "The IOMMU blocked a transfer of this device. For a GPU of the job it is the proof that P2P between the cards does not get through.";
const XID: &str = "NVIDIA's driver reports a GPU event of this number. Several follow others: the first one counts, and 45 is only a consequence.";
const FAULT: &str = "A kernel or engine of an AMD GPU touched memory that is not mapped. The first record of a burst counts.";
const CLIENT: &str = "Which engine caused the page fault: SDMA0 or SDMA1 is the copy engine, TCP a shader, MP0 firmware.";
const RING: &str = "Work on this engine of an AMD GPU did not end in time; a reset follows.";
const OOM: &str = "The kernel ran out of host memory and killed this process.";
const AER: &str = "PCIe reported an error. Corrected ones are harmless in small numbers, uncorrected ones are a hardware or link fault.";
const LINK: &str = "The port of this network card changed its state.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    line("kernel.io_page_fault", "*AMD-Vi: Event logged [IO_PAGE_FAULT device={!device:w} domain={domain:w} address={address:w} flags={flags:x}", "drivers/iommu/amd", IOMMU),
    line("kernel.io_page_fault", "*AMD-Vi: Event logged [IO_PAGE_FAULT {text}", "drivers/iommu/amd", IOMMU),
    line("kernel.io_page_fault_gpu", "*nvidia {!device}: AMD-Vi: Event logged [IO_PAGE_FAULT {text}", "drivers/iommu/amd", IOMMU),
    line("kernel.io_page_fault_gpu", "*amdgpu {!device}: AMD-Vi: Event logged [IO_PAGE_FAULT {text}", "drivers/iommu/amd", IOMMU),
    line("kernel.dmar_fault", "*DMAR: [DMA {direction}] Request device [{!device}] {text}", "drivers/iommu/intel", IOMMU),
    line("kernel.dmar_fault", "*DMAR: [INTR-REMAP] Request device [{!device}] {text}", "drivers/iommu/intel", IOMMU),
    line("kernel.xid", "*NVRM: Xid (PCI:{!device}): {!xid:d}, {text}", "nvidia.ko", XID),
    line("kernel.sxid", "*SXid (PCI:{!device}): {!sxid:d}, {text}", "nvidia.ko", "An NVSwitch reports an event of this number."),
    line("kernel.gpu_lost", "*NVRM: GPU {!device}: GPU has fallen off the bus", "nvidia.ko", "The GPU no longer answers on PCIe: power, heat or hardware."),
    line("kernel.gpu_lost", "*NVRM: fallen off the bus and is not responding to commands", "nvidia.ko", "A GPU no longer answers on PCIe; the line before names it."),
    line("kernel.amdgpu_page_fault", "*amdgpu {!device}: amdgpu: [{!hub}]{}page fault (src_id:{text}", "drivers/gpu/drm/amd", FAULT),
    line("kernel.amdgpu_page_fault", "*[{!hub}]{}page fault (src_id:{text}", "drivers/gpu/drm/amd", FAULT),
    line("kernel.amdgpu_client", "*amdgpu {device}: amdgpu:~Faulty UTCL2 client ID: {!client} (", "drivers/gpu/drm/amd", CLIENT),
    line("kernel.amdgpu_client", "*Faulty UTCL2 client ID: {!client} (", "drivers/gpu/drm/amd", CLIENT),
    line("kernel.amdgpu_status", "*L2_PROTECTION_FAULT_STATUS:{status:x}", "drivers/gpu/drm/amd", "Status of the page fault. 0 marks the noise after the first record."),
    line("kernel.ring_timeout", "*ring {!ring:w} timeout, signaled seq={text}", "drivers/gpu/drm/amd", RING),
    line("kernel.ring_timeout", "*amdgpu_job_timedout{text}", "drivers/gpu/drm/amd", RING),
    line("kernel.ring_timeout", "*amdgpu_job_timedout{}ring {!ring:w} timeout,{text}", "drivers/gpu/drm/amd", RING),
    line("kernel.srbm_write", "*gets an Register Write SRBM_WRITE command in non-privilege command buffer", "drivers/gpu/drm/amd", "The copy engine's ring read garbage."),
    line(
        "kernel.pcie_atomics",
        "*amdgpu {!device}: amdgpu: PCIE atomic ops is not supported",
        "drivers/gpu/drm/amd",
        "This slot has no PCIe atomics; kernels that call back to the host cannot run.",
    ),
    line("kernel.pcie_atomics", "*PCIE atomic ops is not supported", "drivers/gpu/drm/amd", "This slot has no PCIe atomics; kernels that call back to the host cannot run."),
    line("kernel.gpu_reset", "*GPU reset begin!{text}", "drivers/gpu/drm/amd", "The driver resets the GPU; its processes die."),
    line("kernel.mes_failed", "*MES failed to respon{text}", "drivers/gpu/drm/amd", "The GPU's scheduler firmware does not answer; a reset follows."),
    line("kernel.mes_failed", "*failed to unmap legacy queue", "drivers/gpu/drm/amd", "The GPU's scheduler firmware does not answer; a reset follows."),
    line("kernel.gmc", "*gmc_v{!gen:d}_{}_process_interrupt:", "drivers/gpu/drm/amd", "Names the GPU's generation: 9 is Vega and CDNA, 10 RDNA 1 and 2, 11 RDNA 3, 12 RDNA 4."),
    line("kernel.mlx5_link_down", "*mlx5_core {!device:w} {!if}: Link down", "drivers/net/ethernet/mellanox/mlx5", LINK),
    line("kernel.mlx5_link_up", "*mlx5_core {!device:w} {!if}: Link up", "drivers/net/ethernet/mellanox/mlx5", LINK),
    line("kernel.mlx5_module", "*mlx5_core {!device}: Port module event{text}, Cable {!state:w}", "drivers/net/ethernet/mellanox/mlx5", LINK),
    line("kernel.mlx5_module", "*mlx5_core {!device}: Port module event[error]: {!state}", "drivers/net/ethernet/mellanox/mlx5", LINK),
    line("kernel.mlx5_health", "*mlx5_core {!device}: {}device's health compromised{text}", "drivers/net/ethernet/mellanox/mlx5", "The network card is sick and may be reset."),
    line("kernel.mlx5_command", "*mlx5_core {!device}: {}mlx5_cmd_out_err:{} {!text}", "drivers/net/ethernet/mellanox/mlx5", "A command to the network card failed."),
    line("kernel.aer", "*AER: Corrected error {text}", "drivers/pci/pcie/aer.c", AER),
    line("kernel.aer", "*AER: Uncorrect{!text}", "drivers/pci/pcie/aer.c", AER),
    line("kernel.aer", "*AER: Multiple {!text}", "drivers/pci/pcie/aer.c", AER),
    line("kernel.aer", "*PCIe Bus Error: severity={!text}, type=", "drivers/pci/pcie/aer.c", AER),
    line("kernel.oom_kill", "*Out of memory: Killed process {!pid:d} ({name})", "mm/oom_kill.c", OOM),
    line(
        "kernel.oom_kill",
        "*emory cgroup out of memory: Killed process {!pid:d} ({name})",
        "mm/oom_kill.c",
        "The container or job reached its memory limit and the kernel killed this process.",
    ),
    line("kernel.oom_kill", "*invoked oom-killer: gfp_mask=", "mm/oom_kill.c", OOM),
    line("kernel.segfault", "*]: segfault at {address:x} ip {ip:x} sp {:x} error {:d}{text}", "arch/x86/mm/fault.c", "A process crashed with an invalid memory access."),
    line("kernel.segfault", "*general protection fault ip:{ip:x} sp:{:x}", "arch/x86/kernel/traps.c", "A process crashed with an invalid memory access."),
    line(
        "kernel.iommu_default",
        "*iommu: Default domain type: {!type:w}",
        "drivers/iommu/iommu.c",
        "`Passthrough` is iommu=pt; `Translated` checks every transfer between devices.",
    ),
    line("kernel.iommu_on", "*DMAR: IOMMU enabled", "drivers/iommu/intel", "Intel's IOMMU is on."),
];
