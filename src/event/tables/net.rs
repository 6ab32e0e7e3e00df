//! The choice of the network. Source: `src/net.cc`, `src/plugin/net.cc`.

use crate::event::shape::{Shape, Stage, shape};

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("net.using", "Using network {!net}", "2.6.4", "", "net.cc", "The network that was chosen for data between nodes. On one node nothing travels over it.")
        .at(Stage::Network),
    shape("net.plugin_initialized", "Initialized NET plugin {!plugin}", "2.27.3", "", "plugin/net.cc", "This network could be used.").any(),
    shape(
        "net.plugin_init_failed",
        "Failed to initialize NET plugin {!plugin}",
        "2.28.3",
        "",
        "plugin/net.cc",
        "This network cannot be used here; normal for IB on a machine without HCA.",
    )
    .any(),
    shape("net.plugin_assigned", "Assigned NET plugin {!plugin} to comm", "2.27.3", "", "plugin/net.cc", "The network that was chosen for this communicator."),
    shape("net.none", "Failed to initialize any NET plugin", "2.27.3", "", "plugin/net.cc", "The wanted network (NCCL_NET) cannot be used.").any(),
    shape("net.not_found", "Error: network {!net} not found.", "2.10.3", "2.26.6", "net.cc", "NCCL_NET asks for a network that is not usable here.").any(),
    shape("net.non_device", "Using non-device net plugin version {version:d}", "2.19.1", "2.21.5", "net.cc", "Nothing special."),
    shape("net.speed", "Found network interface {!iface} with speed {speed:d} Mbps", "2.30.3", "", "transport/net_socket.cc", "Speed of a TCP interface."),
    shape("net.no_speed", "Could not get speed {text}", "2.6.4", "", "transport/net_socket.cc", "The speed of an interface is unknown; 10 Gbps is assumed. Harmless."),
    shape("net.device_counts", "Local Net device counts across ranks: min {min:d} max {max:d}", "2.30.3", "", "init.cc", "How many network devices the ranks see."),
    shape(
        "net.device_mismatch",
        "Detected mixed local Net device counts across ranks (min {min:d}, max {max:d})",
        "2.30.3",
        "",
        "init.cc",
        "A node has lost or gained a network device.",
    )
    .any(),
    shape(
        "transport.none",
        "No transport found for rank {!rank:d}[{bus}] -> rank {!peer_rank:d}[{bus2}]",
        "2.12.7",
        "",
        "transport.cc",
        "P2P, shared memory and network all refuse this pair.",
    )
    .any(),
    shape("transport.none", "No transport found !", "2.5.6", "2.11.4", "transport.cc", "P2P, shared memory and network all refuse a pair.").any(),
    shape(
        "net.nic_properties",
        "NET/IB~: Requested properties for vNic {text}",
        "2.24.3",
        "",
        "transport/net_ib.cc",
        "The virtual NIC that was asked for does not exist (NIC merging).",
    )
    .any(),
    shape("net.nic_properties", "Requested properties for vNic {text}", "2.24.3", "", "transport/net_ib.cc", "The virtual NIC that was asked for does not exist (NIC merging).")
        .any(),
    shape(
        "net.message_truncated",
        "NET/IB : req {text} peer {!peer} posted incorrect receive info: size {got:d}",
        "2.18.1",
        "",
        "transport/net_ib.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape("topo.not_pci", "Topology detection: network path {path} is not a PCI device{text}", "2.6.4", "", "graph/xml.cc", "A virtual network interface; harmless."),
    shape(
        "topo.unreadable",
        "Topology detection : could not read {path}, ignoring",
        "2.6.4",
        "",
        "graph/xml.cc",
        "Part of sysfs is hidden (container, VM); the topology is guessed.",
    ),
    shape(
        "topo.attribute",
        "Attribute {!name:w} of node {!node:w} not found",
        "2.6.4",
        "",
        "graph/xml.h",
        "The description of the machine lacks a part that the library needs: a broken topology file, mostly.",
    )
    .any(),
    shape("topo.no_real_path", "Could not find real path of {path}", "2.5.6", "", "graph/xml.cc", "Part of sysfs is hidden (container, VM)."),
    shape(
        "net.message_truncated",
        "NET/IB : req {text} peer {!peer} collective mismatch error, local size {got:d} remote size {want:d}",
        "2.12.10",
        "2.19.4",
        "transport/net_ib.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape(
        "net.message_truncated",
        "NET/IB : req {text} peer {!peer} collective mismatch error local size {got:d} remote {want:d}",
        "2.12.7",
        "2.12.7",
        "transport/net_ib.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape(
        "net.message_truncated",
        "NET/IB : peer {!peer} collective mismatch error local size {got:d} remote {want:d}",
        "2.10.3",
        "2.11.4",
        "transport/net_ib.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape(
        "net.message_truncated",
        "NET/IB : collective mismatch error local size {got:d} remote {want:d}",
        "2.5.6",
        "2.9.9",
        "transport/net_ib.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape("benign.collnet", "Cannot initialize CollNet, using {text}", "2.6.4", "", "transport.cc", "In-network reduction is not available; point-to-point is used. Harmless."),
];
