//! Plugins: net, tuner, profiler, env; AWS OFI, HPC-X, vendors. Sources: `src/plugin/*.cc`, the plugins themselves.

use crate::event::shape::{Shape, Stage, shape};

const NO_SHARP: &str = "SHARP (in-network reduction) is not available; harmless.";
const OFI_CALL: &str = "A libfabric call failed; the return code is libfabric's.";
const OFI_TRANSFER: &str = "A transfer failed; the return code is libfabric's.";
const NONE: &str = "No external plugin; normal unless one was wanted.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("plugin.none", "NET/Plugin~: No plugin found{text}", "2.4.2", "2.21.5", "net.cc", NONE).at(Stage::NetPlugin),
    shape("plugin.none", "No plugin found{text}", "2.4.2", "2.18.6", "net.cc", NONE).at(Stage::NetPlugin),
    shape("plugin.none", "NET/Plugin~: dlerror={error} No plugin found{text}", "2.19.1", "2.20.5", "net.cc", NONE).at(Stage::NetPlugin),
    shape("plugin.none", "NET/Plugin: Could not find: {list}", "2.22.3", "", "plugin/plugin_open.cc", NONE).at(Stage::NetPlugin),
    shape("plugin.none", "{!what:i}/Plugin: Could not find: {list}", "2.26.2", "", "plugin/plugin_open.cc", NONE),
    shape("plugin.none", "NET/Plugin: Using internal network plugin.", "2.21.5", "2.21.5", "net.cc", NONE).at(Stage::NetPlugin),
    shape(
        "plugin.load_failed",
        "NET/Plugin~: Plugin load ({!name}) returned {code:d} : {!error}",
        "2.17.1",
        "2.18.6",
        "net.cc",
        "The plugin's library could not be loaded; 'No such file' is normal unless it was wanted.",
    ),
    shape(
        "plugin.load_failed",
        "Plugin load ({!name}) returned {code:d} : {!error}",
        "2.17.1",
        "2.18.6",
        "net.cc",
        "The plugin's library could not be loaded; 'No such file' is normal unless it was wanted.",
    ),
    shape(
        "plugin.load_failed",
        "NET/Plugin: Plugin load returned {code:d} : {!error} : when loading {!name}",
        "2.21.5",
        "2.21.5",
        "net.cc",
        "The plugin's library could not be loaded; 'No such file' is normal unless it was wanted.",
    ),
    shape(
        "plugin.load_failed",
        "NET/Plugin~: {!name}.so{suffix}: {!error}",
        "2.22.3",
        "",
        "plugin/plugin_open.cc",
        "The plugin's library could not be loaded; the text is the loader's. 'No such file' is normal unless it was wanted.",
    )
    .any(),
    shape(
        "plugin.symbol",
        "NET/Plugin~: Failed to find {!name:w} symbol",
        "2.12.7",
        "",
        "plugin/net.cc",
        "The library asks for several plugin interfaces in turn; normal before a Loaded line.",
    ),
    shape("plugin.loaded", "NET/Plugin~: Loaded {text} plugin {!name} (v{version:d})", "2.12.7", "", "plugin/net.cc", "An external plugin was loaded.").at(Stage::NetPlugin),
    shape("plugin.loaded", "Successfully loaded external {text}plugin {!name}", "2.27.3", "", "plugin/net.cc", "An external plugin was loaded.").at(Stage::NetPlugin),
    shape("plugin.loaded", "NET/Plugin~: Using {!name} plugin", "2.12.7", "", "plugin/net.cc", "An external plugin is used.").at(Stage::NetPlugin),
    shape("plugin.unsupported", "External network plugin {!name} is unsupported", "2.28.3", "", "plugin/net.cc", "The plugin has no interface that this library knows."),
    shape("plugin.hpcx", "P2P plugin {!name}", "", "", "HPC-X nccl-rdma-sharp-plugins", "HPC-X's own IB implementation is used."),
    shape("plugin.hpcx", "Plugin Path : {path}", "", "", "HPC-X nccl-rdma-sharp-plugins", "HPC-X's own IB implementation is used."),
    shape("plugin.sharp_off", "SHARP coll init error{text}", "", "", "HPC-X nccl-rdma-sharp-plugins", NO_SHARP),
    shape("plugin.sharp_off", "NET/IB~:~SHARP coll init error{text}", "", "", "HPC-X nccl-rdma-sharp-plugins", NO_SHARP),
    shape("plugin.sharp_off", "SHARP group create~: {text}", "", "", "HPC-X nccl-rdma-sharp-plugins", NO_SHARP),
    shape("plugin.sharp_off", "sharp_coll_caps_query failed~: {text}", "", "", "HPC-X nccl-rdma-sharp-plugins", NO_SHARP),
    shape("plugin.ofi", "NET/OFI Using aws-ofi-nccl {version:w}", "", "", "aws-ofi-nccl", "The AWS OFI plugin runs.").at(Stage::NetPlugin),
    shape("plugin.ofi", "NET/OFI Initializing aws-ofi-nccl {version:w}", "", "", "aws-ofi-nccl", "The AWS OFI plugin runs.").at(Stage::NetPlugin),
    shape("plugin.ofi_provider", "NET/OFI Selected {text}rovider is {!name}", "", "", "aws-ofi-nccl", "The libfabric provider that carries data; efa is the fast one.")
        .at(Stage::NetDevices),
    shape("plugin.ofi_error", "NET/OFI {text} failed{text2} RC: {!code:d}, ERROR: {!error}", "", "", "aws-ofi-nccl", OFI_CALL).any(),
    shape("plugin.ofi_error", "NET/OFI {text}RC: {!code:d}{text2}ERROR: {!error}", "", "", "aws-ofi-nccl", OFI_CALL).any(),
    shape("plugin.ofi_error", "NET/OFI {text}RC: {!code:d}, Error: {!error}", "", "", "aws-ofi-nccl", OFI_CALL).any(),
    shape("plugin.ofi_error", "NET/OFI Creating new {text} failed: {!error}", "", "", "aws-ofi-nccl", OFI_CALL).any(),
    shape("plugin.ofi_error", "NET/OFI preparing for connection failed: {!error}", "", "", "aws-ofi-nccl", OFI_CALL).any(),
    shape("plugin.ofi_error", "NET/OFI Couldn't {!error}", "", "", "aws-ofi-nccl", "A libfabric call failed.").any(),
    shape("plugin.ofi_error", "NET/OFI Request {text} completed with error. RC: {!code:d}. Error: {!error}", "", "", "aws-ofi-nccl", OFI_TRANSFER).any(),
    shape("plugin.ofi_error", "NET/OFI Request {text} completed with error. RC: {!code:d}. Flags: {flags:d}. Error: {provider:d} ({!error})", "", "", "aws-ofi-nccl", OFI_TRANSFER)
        .any(),
    shape(
        "plugin.ofi_error",
        "NET/OFI Request {text} completed with error: err: {!code:d}, flags: {flags:d}, prov_errno: {provider:d}, strerror: {!error}, len",
        "",
        "",
        "aws-ofi-nccl",
        "A transfer failed; the plugin itself adds that a security group is not set up for EFA.",
    )
    .any(),
    shape("plugin.ofi_error", "NET/OFI Remote write completed with error. RC: {!code:d}. Flags: {flags:d}. Error: {provider:d} ({!error})", "", "", "aws-ofi-nccl", OFI_TRANSFER)
        .any(),
    shape("plugin.ofi_none", "NET/OFI {text}o eligible providers were found", "", "", "aws-ofi-nccl", "No libfabric provider fits: no EFA device, or the container hides it.")
        .any(),
    shape("plugin.ofi_none", "NET/OFI Failed to initialize {!text} protocol", "", "", "aws-ofi-nccl", "The plugin has no usable network.").any(),
    shape("plugin.ofi_none", "NET/OFI aws-ofi-nccl initialization failed{text}", "", "", "aws-ofi-nccl", "The plugin has no usable network.").any(),
    shape("plugin.vendor", "NET/{!name:w} {text}ailed {error}", "", "", "vendor plugins", "A vendor's network plugin reports a failure."),
    shape("plugin.ofi_none", "NET/OFI Unable to find a protocol that worked.{text}", "", "", "aws-ofi-nccl", "The plugin has no usable network.").any(),
    shape("plugin.ofi_none", "NET/OFI Initializing plugin failed", "", "", "aws-ofi-nccl", "The plugin has no usable network.").any(),
];
