//! Rows of host facts that people paste beside a log: kernel command line, lspci, nvidia-smi, ibverbs tools, limits.

use super::line;
use crate::event::shape::Shape;

const GPU: &str = "The GPU's model, without the maker's name.";
const TOPO: &str = "How the GPUs of a node are connected.";
const HCA: &str = "An RDMA device of this node.";
const GIDS: &str = "One entry of the GID table: RoCE needs a v2 entry with the fabric's IPv4 address, and its index may differ between nodes.";
const MEMLOCK: &str = "How much memory a process may pin, in kB or bytes as printed. RDMA needs it unlimited.";
const SHM: &str = "Size and use of /dev/shm. 64M is a container's default and too small for many ranks.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    line("host.cmdline", "*BOOT_IMAGE={cmdline}", "/proc/cmdline", "The kernel command line; iommu=pt or its absence is read from here."),
    line("host.acsctl", "~ACSCtl: {!flags}", "lspci -vvv", "Access control of a PCIe bridge: SrcValid+ and ReqRedir+ send P2P transfers through the root complex and the IOMMU."),
    line("host.topo_header", "~GPU0~GPU1{columns}", "nvidia-smi topo", TOPO),
    line("host.topo_row", "GPU{gpu:d}{row} X {rest}", "nvidia-smi topo", TOPO),
    line("host.topo_row", "GPU{gpu:d}{row} X$", "nvidia-smi topo", TOPO),
    line("gpu.name", "~GPU {index:d}: NVIDIA {!name} (UUID: {uuid})", "nvidia-smi -L", GPU),
    line("gpu.name", "~GPU {index:d}: Tesla {!name} (UUID: {uuid})", "nvidia-smi -L", GPU),
    line("gpu.name", "~GPU {index:d}: GeForce {!name} (UUID: {uuid})", "nvidia-smi -L", GPU),
    line("gpu.name", "~GPU {index:d}: NVIDIA {!name}$", "torch.utils.collect_env", GPU),
    line("gpu.name", "| {index:d} NVIDIA {!name} On~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "| {index:d} NVIDIA {!name} Off~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "| {index:d} Tesla {!name} On~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "| {index:d} Tesla {!name} Off~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "| {index:d} GeForce {!name} On~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "| {index:d} GeForce {!name} Off~| 0000", "nvidia-smi", GPU),
    line("gpu.name", "*device_name={!name}.json", "vllm/model_executor", "The GPU's model as a file name."),
    line("host.driver", "*Driver Version: {!version:w} {}CUDA Version: {cuda:w}", "nvidia-smi", "The driver's version and the newest CUDA that it runs."),
    line("host.driver", "Nvidia driver version: {!version:w}", "torch.utils.collect_env", "The driver's version."),
    line("nvml.failed", "Failed to initialize NVML: {!error}", "nvidia-smi", "The driver's management library does not start on this host."),
    line("host.torch", "PyTorch version: {!version:w}", "torch.utils.collect_env", "The torch version."),
    line("host.nccl_wheel", "[pip3] nvidia-nccl-cu{cuda:d}=={!version:w}", "pip", "An NCCL that is installed beside torch. Two of them can be mixed up at load time."),
    line("host.nccl_path", "libnccl.so.2 => {!path:w} (", "ldd", "The NCCL library that the loader finds for this file."),
    line("host.ibv_device", "hca_id:~{!hca:w}", "ibv_devinfo", HCA),
    line("host.ibv_device", "{!hca:w} port {port:d} ==> {if:w} ({state})", "ibdev2netdev", HCA),
    line("host.ibv_device", "link {!hca:w} state {state:w} physical_state {physical:w} netdev {if:w}", "rdma link show", HCA),
    line("host.ibv_port", "~state:~PORT_{!state:w}", "ibv_devinfo", "State of an RDMA port."),
    line("host.ibv_mtu", "~active_mtu: {!mtu:d} (", "ibv_devinfo", "MTU in use on an RDMA port; it should be the same on all nodes."),
    line("host.ibv_layer", "~link_layer: {!layer:w}$", "ibv_devinfo", "InfiniBand, or Ethernet for RoCE."),
    line("host.show_gids_row", "{!hca:w} {port:d} {!index:d} {gid}:0000:0000:ffff:{low:w} {ip:w} v{!version:d} {if:w}", "show_gids", GIDS),
    line("host.show_gids_row", "{!hca:w} {port:d} {!index:d} fe80:0000:0000:0000:{low:w} v{!version:d} {if:w}", "show_gids", GIDS),
    line("host.ulimit_memlock", "max locked memory~(kbytes, -l) {!value:w}", "ulimit -a", MEMLOCK),
    line("host.ulimit_memlock", "Max locked memory {!value:w} {hard:w} bytes", "/proc/self/limits", MEMLOCK),
    line("host.ulimit_nofile", "open files~(-n) {!value:w}", "ulimit -a", "How many file descriptors a process may have."),
    line("host.ulimit_nofile", "Max open files {!value:w} {hard:w} files", "/proc/self/limits", "How many file descriptors a process may have."),
    line("host.df_shm", "shm {!size:w} {used:w} {avail:w} {percent:w} /dev/shm", "df", SHM),
    line("host.df_shm", "tmpfs {!size:w} {used:w} {avail:w} {percent:w} /dev/shm", "df", SHM),
    line("host.ip_link", "{index:d}: {!if}: <{flags}> mtu {!mtu:d} {text}", "ip link", "A network interface with its MTU."),
    line("host.link_speed", "~Speed: {!speed:d}Mb/s", "ethtool", "Speed of a network interface."),
];
