//! The commands, as data. All of them only read; none needs root.

/// How a command is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A program and its arguments; an argument with `*` names all files that match.
    Program(&'static [&'static str]),
    /// A builtin of the shell.
    Builtin(&'static str),
    /// The same for every network interface with hardware behind it, its name as last argument.
    Interfaces(&'static [&'static str]),
}

/// A command and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// What is run.
    pub call: Call,
    /// Why it is read.
    pub why: &'static str,
    /// Causes that it decides or whose fix it fills in.
    pub causes: &'static [&'static str],
    /// What is missing in its output without root; empty if nothing is.
    pub root: &'static str,
    /// It is run only where the one before it failed.
    pub otherwise: bool,
}

const fn probe(argv: &'static [&'static str], why: &'static str, causes: &'static [&'static str]) -> Probe {
    Probe { call: Call::Program(argv), why, causes, root: "", otherwise: false }
}

const fn root(probe: Probe, without: &'static str) -> Probe {
    Probe { root: without, ..probe }
}

const fn otherwise(probe: Probe) -> Probe {
    Probe { otherwise: true, ..probe }
}

const NET: &[&str] = &["tcp-fallback", "fabric-split", "bootstrap-unreachable"];
const GID: &[&str] = &["roce-qp-gid-mtu", "tcp-fallback"];
const HCA: &[&str] = &["tcp-fallback", "ib-device-missing", "roce-qp-gid-mtu"];
const LINK: &[&str] = &["ib-port-error", "tcp-fallback", "roce-qp-gid-mtu"];
const P2P: &[&str] = &["p2p-iommu-acs-hang", "slow-intra-node"];
const AMD: &[&str] = &["rccl-sdma-rdna", "gpu-arch-mismatch"];
const KERNEL: &[&str] = &["gpu-error", "p2p-iommu-acs-hang", "rccl-sdma-rdna", "ib-port-error"];
const KERNEL_ROOT: &str = "the kernel's messages, on hosts that keep them from users";

/// All commands in the order in which they are written.
pub const PROBES: &[Probe] = &[
    probe(&["nvidia-smi"], "driver and CUDA versions, GPU models, processes on them", &["driver-mismatch", "gpu-not-visible", "p2p-iommu-acs-hang"]),
    probe(&["nvidia-smi", "topo", "-m"], "how GPUs and NICs are joined: NVLink or PCIe, one machine or a fabric", P2P),
    probe(&["nvidia-smi", "topo", "-p2p", "r"], "between which GPUs the driver allows P2P reads", P2P),
    probe(&["rocm-smi", "--showtopo"], "how AMD GPUs are joined", AMD),
    probe(&["rocminfo"], "architectures (gfx…) and models of AMD GPUs", AMD),
    probe(&["vulkaninfo", "--summary"], "whether the cards can be used by Vulkan, the way around RCCL", &["rccl-sdma-rdna"]),
    probe(&["ibv_devices"], "which HCAs a program can open", HCA),
    probe(&["ibv_devinfo", "-v"], "state, link layer, MTU and GIDs of each port", HCA),
    probe(&["ibstat"], "state and rate of each port; the reason of a port that is down", LINK),
    probe(&["ibstatus"], "the same where ibstat is missing; the link layer", LINK),
    probe(&["ibdev2netdev"], "which interface belongs to which HCA", HCA),
    probe(&["rdma", "link", "show"], "which interface belongs to which HCA, and the state of both", HCA),
    probe(&["show_gids"], "which GID index is RoCE v2 with the fabric's IPv4 address", GID),
    probe(
        &[
            "grep",
            "-sH",
            ".",
            "/sys/class/infiniband/*/ports/*/link_layer",
            "/sys/class/infiniband/*/ports/*/state",
            "/sys/class/infiniband/*/ports/*/phys_state",
            "/sys/class/infiniband/*/ports/*/rate",
        ],
        "state and rate of each port where no tool is installed",
        LINK,
    ),
    probe(&["grep", "-rsHv", "^0000:0000:0000:0000:0000:0000:0000:0000$", "/sys/class/infiniband/*/ports/*/gids"], "the GID table of each port, empty entries left out", GID),
    probe(&["grep", "-rsH", ".", "/sys/class/infiniband/*/ports/*/gid_attrs/types"], "RoCE version of each GID", GID),
    probe(&["grep", "-rsH", ".", "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs"], "interface of each GID", GID),
    probe(&["ip", "-br", "addr"], "addresses of each interface", NET),
    otherwise(probe(&["ip", "addr"], "the same, with MTU and state, from a small `ip`", NET)),
    probe(&["ip", "-br", "link"], "which interfaces are up", NET),
    probe(&["ip", "-d", "link", "show"], "MTU and kind (bridge, veth, bond, VLAN) of each interface", &["roce-qp-gid-mtu", "tcp-fallback"]),
    Probe {
        call: Call::Interfaces(&["ethtool"]),
        why: "speed of each interface and whether it has a link",
        causes: &["tcp-fallback", "roce-qp-gid-mtu"],
        root: "",
        otherwise: false,
    },
    probe(&["cat", "/proc/cmdline"], "IOMMU settings of the running kernel", &["p2p-iommu-acs-hang", "rccl-sdma-rdna"]),
    root(probe(&["lspci", "-vvv"], "ACS on the bridges above the GPUs; PCIe width and speed", P2P), "the ACSCtl lines"),
    probe(&["lspci", "-tv"], "which bridges lie above which GPU", P2P),
    Probe { call: Call::Builtin("ulimit -a"), why: "limits on locked memory and open files of this login", causes: &["memlock-limit", "fd-limit"], root: "", otherwise: false },
    probe(&["df", "-h", "/dev/shm"], "room in shared memory", &["shm-too-small"]),
    probe(&["grep", "-sH", ".", "/etc/nccl.conf"], "NCCL settings that come from a file", &["tcp-fallback", "env-mismatch", "workaround-left"]),
    root(probe(&["dmesg", "-T"], "Xid, IOMMU faults, HCA and GPU driver errors", KERNEL), KERNEL_ROOT),
    otherwise(root(probe(&["dmesg"], "the same where dmesg knows no -T", KERNEL), KERNEL_ROOT)),
    otherwise(root(probe(&["journalctl", "-k", "-b", "-n", "5000", "--no-pager"], "the same from the journal", KERNEL), KERNEL_ROOT)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cause;

    #[test]
    fn every_command_serves_known_causes_and_only_reads() {
        const READS: [&str; 18] = [
            "nvidia-smi",
            "rocm-smi",
            "rocminfo",
            "vulkaninfo",
            "ibv_devices",
            "ibv_devinfo",
            "ibstat",
            "ibstatus",
            "ibdev2netdev",
            "rdma",
            "show_gids",
            "grep",
            "ip",
            "cat",
            "lspci",
            "df",
            "dmesg",
            "journalctl",
        ];
        for probe in PROBES {
            assert!(!probe.why.is_empty() && !probe.causes.is_empty(), "{probe:?}");
            assert!(probe.causes.iter().all(|c| cause(c).is_some_and(|k| k.id == *c)), "{probe:?}");
            match probe.call {
                Call::Program(argv) => assert!(READS.contains(&argv[0]), "{probe:?}"),
                Call::Interfaces(argv) => assert_eq!(argv, ["ethtool"]),
                Call::Builtin(text) => assert_eq!(text, "ulimit -a"),
            }
        }
        assert!(!PROBES[0].otherwise, "there is nothing before the first");
    }

    #[test]
    fn arguments_are_words_or_absolute_patterns() {
        // The script leaves patterns without quotes; anything but these characters could mean something to a shell.
        for argv in PROBES.iter().filter_map(|p| if let Call::Program(argv) = p.call { Some(argv) } else { None }) {
            for word in argv {
                let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./*:^$".contains(c));
                assert!(plain && (!word.contains('*') || word.starts_with('/')), "{word}");
            }
        }
    }
}
