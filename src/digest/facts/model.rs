//! The facts of one host. Bounded: what exceeds a bound is counted, not kept.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most network interfaces of a host.
pub const MAX_INTERFACES: usize = 64;
/// Most addresses of an interface.
pub const MAX_ADDRESSES: usize = 8;
/// Most RDMA devices of a host.
pub const MAX_HCAS: usize = 32;
/// Most ports of an RDMA device.
pub const MAX_PORTS: usize = 4;
/// Most GIDs of a host.
pub const MAX_GIDS: usize = 256;
/// Most GPUs of a host, and rows of one matrix.
pub const MAX_GPUS: usize = 16;
/// Most PCIe bridges, and devices with access control.
pub const MAX_BRIDGES: usize = 256;
/// Most measured bandwidths.
pub const MAX_BANDWIDTHS: usize = 32;
/// Most commands of a collected file.
pub const MAX_COMMANDS: usize = 64;
/// Longest name, in bytes.
pub const MAX_NAME: usize = 80;
/// Longest line that is kept as evidence, in bytes.
pub const MAX_LINE_TEXT: usize = 240;

/// The line that a fact was read from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Stream id. Facts are kept with their stream, so it is set where they leave it.
    #[serde(skip)]
    pub stream: u32,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte offset of the line in the decoded stream.
    pub offset: u64,
    /// Its text, at most [`MAX_LINE_TEXT`] bytes.
    pub text: String,
}

/// A value with the line that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// Its line.
    pub at: Line,
}

impl<T> Fact<T> {
    /// A value and its line.
    pub fn new(value: T, at: &Line) -> Self {
        Self { value, at: at.clone() }
    }
}

/// How it is known whose facts they are, surest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Naming {
    /// `### ncclog-collect 1 host=NAME`.
    Marker,
    /// A prompt: `user@host:~$ `.
    Prompt,
    /// A prefix of a log driver or launcher.
    Wrapper,
    /// The name of the file or its directory is a host of the job.
    File,
    /// The job has only this host.
    OnlyHost,
    /// Addresses or devices that the library's own lines name.
    Matched,
    /// Nothing tells.
    #[default]
    Unknown,
}

/// Everything that is known of one host beside the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Name that the facts themselves give; empty if none.
    pub host: String,
    /// Where the name comes from.
    pub naming: Naming,
    /// Task of the launcher that put its number in front of the lines. It need not be a rank of the job.
    pub task: Option<u32>,
    /// When a collected file was written, as printed.
    pub time: String,
    /// Commands of a collected file, in order.
    pub commands: Vec<Command>,
    /// Network interfaces, in order of appearance.
    pub interfaces: Vec<Interface>,
    /// RDMA devices, in order of appearance.
    pub hcas: Vec<Hca>,
    /// GPUs by index.
    pub gpus: Vec<Gpu>,
    /// Rows of the tables between GPUs.
    pub matrix: Vec<MatrixRow>,
    /// Version of the GPU's driver.
    pub driver: Option<Fact<String>>,
    /// `/proc/cmdline`.
    pub cmdline: Option<Fact<String>>,
    /// PCIe access control.
    pub acs: Vec<Acs>,
    /// PCIe bridges with the buses below them, in order of appearance.
    pub bridges: Vec<PciBridge>,
    /// `ulimit -l`.
    pub memlock: Option<Fact<Limit>>,
    /// `ulimit -n`.
    pub nofile: Option<Fact<Limit>>,
    /// `/dev/shm`.
    pub shm: Option<Fact<Shm>>,
    /// No RDMA device: `ibv_devices` or `ibv_devinfo` came out empty.
    pub no_hca: Option<Line>,
    /// Measured bandwidths.
    pub bandwidths: Vec<Bandwidth>,
    /// Facts beyond a bound.
    pub dropped: u64,
}

/// A command of a collected file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// As written behind `### $ `.
    pub text: String,
    /// Exit code behind `### exit `.
    pub exit: Option<i32>,
    /// Its heading.
    pub at: Line,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// The link is up, with carrier.
    pub up: Option<Fact<bool>>,
    /// MTU.
    pub mtu: Option<Fact<u32>>,
    /// Speed in Mb/s.
    pub speed: Option<Fact<u64>>,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<Fact<Address>>,
}

/// An address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Length of the prefix.
    pub prefix: u8,
}

impl Address {
    /// Network part, with its length.
    pub fn network(self) -> (u128, u8) {
        let (bits, width): (u128, u8) = match self.ip {
            IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
            IpAddr::V6(ip) => (u128::from(ip), 128),
        };
        let host = width.saturating_sub(self.prefix);
        (if host >= 128 { 0 } else { bits >> host << host }, self.prefix.min(width))
    }
}

/// An RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hca {
    /// Name.
    pub name: String,
    /// First line that names it.
    pub at: Line,
    /// Its ports by number.
    pub ports: Vec<Port>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Number, from 1.
    pub number: u8,
    /// `ACTIVE`, `DOWN`, `INIT`, `ARMED`.
    pub state: Option<Fact<String>>,
    /// `LinkUp`, `Disabled`, `Polling`, without blanks and underscores, in lower case: `linkup`.
    pub physical: Option<Fact<String>>,
    /// Rate in Gb/s.
    pub rate: Option<Fact<u32>>,
    /// MTU in use, in bytes.
    pub active_mtu: Option<Fact<u32>>,
    /// Largest MTU, in bytes.
    pub max_mtu: Option<Fact<u32>>,
    /// Link layer.
    pub layer: Option<Fact<LinkLayer>>,
    /// Network interface behind it.
    pub netdev: Option<Fact<String>>,
    /// Local identifier; 0 on Ethernet and where no subnet manager answered.
    pub lid: Option<Fact<u32>>,
    /// Identifier of the subnet manager.
    pub sm_lid: Option<Fact<u32>>,
    /// The table of GIDs, by index.
    pub gids: Vec<Gid>,
}

/// What a port is plugged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// Ethernet: RoCE, addresses are GIDs.
    Ethernet,
    /// InfiniBand: addresses are LIDs.
    InfiniBand,
}

/// An entry of a GID table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gid {
    /// Index.
    pub index: u16,
    /// The address.
    pub gid: Ipv6Addr,
    /// RoCE version.
    pub kind: Option<GidKind>,
    /// Network interface that it belongs to; empty if not told.
    pub netdev: String,
    /// Line that shows the address.
    pub at: Line,
}

impl Gid {
    /// The IPv4 address that it carries.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.gid.to_ipv4_mapped()
    }
}

/// What packets a GID sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GidKind {
    /// InfiniBand or RoCE v1.
    V1,
    /// RoCE v2: UDP, routable.
    V2,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Index.
    pub index: u32,
    /// Model, with the maker's name where it was printed.
    pub name: String,
    /// PCI address; empty if not told.
    pub bus_id: String,
    /// `gfx1201`; empty for NVIDIA.
    pub arch: String,
    /// Line that names it.
    pub at: Line,
}

/// What a table between GPUs shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// `nvidia-smi topo -m`: NV18, PIX, PXB, PHB, NODE, SYS.
    Topology,
    /// `nvidia-smi topo -p2p r`: OK, CNS, GNS, TNS, NS, DR.
    P2pRead,
    /// `nvidia-smi topo -p2p w`.
    P2pWrite,
    /// `rocm-smi --showtopo`, type of the link: PCIE, XGMI.
    LinkType,
    /// `rocm-smi --showtopo`, access: True, False.
    Access,
}

/// One row of a table between GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// The table.
    pub table: Table,
    /// GPU of the row.
    pub gpu: u32,
    /// (GPU of the column, value); the diagonal is left out.
    pub cells: Vec<(u32, String)>,
    /// Its line.
    pub at: Line,
}

/// Access control of a PCIe device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acs {
    /// PCI address; empty where the output was filtered.
    pub device: String,
    /// It is a bridge, as far as its heading says.
    pub bridge: bool,
    /// First and last bus below the bridge, where its heading was whole.
    pub below: Option<(u8, u8)>,
    /// Requests are redirected: `SrcValid+` and `ReqRedir+`.
    pub redirects: bool,
    /// Its line.
    pub at: Line,
}

/// A PCIe bridge: a root port, or a port of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciBridge {
    /// PCI address, without the domain where it is 0.
    pub device: String,
    /// First and last bus below it.
    pub below: (u8, u8),
    /// Its line.
    pub at: Line,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// None.
    Unlimited,
    /// Bytes, or files.
    Value(u64),
}

/// Size and use of `/dev/shm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shm {
    /// Size in bytes.
    pub size: u64,
    /// Free bytes.
    pub free: u64,
}

/// A measured bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// `ib_write_bw`, `nccl-tests`.
    pub tool: String,
    /// RDMA device; empty for tests of a communicator.
    pub device: String,
    /// Size of a message in bytes.
    pub size: u64,
    /// Gb/s.
    pub gbps: f64,
    /// Its line.
    pub at: Line,
}
