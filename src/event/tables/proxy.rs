//! Proxy threads. Source: `src/proxy.cc`. Most of these follow another failure or a teardown.

use crate::event::shape::{Shape, shape};

const AFTER: &str = "The real reason was printed by the same process just before; at the end of a run this is teardown noise.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("proxy.op_failed", "[Proxy Service {from:d}] Failed to execute operation {!op} from rank {rank:d}, retcode {!code:d}", "2.12.7", "", "proxy.cc", AFTER),
    shape(
        "proxy.poll_failed",
        "[Proxy Service] Poll failed: {!error}",
        "2.12.7",
        "",
        "proxy.cc",
        "The proxy cannot wait for its connections; 'Invalid argument' comes from a very low limit of open files.",
    )
    .any(),
    shape(
        "proxy.accept_failed",
        "[Service thread] Accept failed {!error}",
        "2.12.7",
        "2.29.7",
        "proxy.cc",
        "A local connection could not be accepted; 'Too many open files' is the limit, else teardown.",
    ),
    shape(
        "proxy.accept_failed",
        "[Proxy Service] Accept failed {!error}",
        "2.12.7",
        "",
        "proxy.cc",
        "A local connection could not be accepted; 'Too many open files' is the limit, else teardown.",
    ),
    shape(
        "proxy.closed_early",
        "[Service thread] Could not receive type from localRank {peer:d}, res={code:d}, closed={closed:d}",
        "2.12.7",
        "",
        "proxy.cc",
        "A local peer left; teardown noise after a good run.",
    ),
    shape(
        "proxy.closed_early",
        "[Proxy Service {from:d}] Could not receive type from rank {peer:d}{text}",
        "2.12.7",
        "",
        "proxy.cc",
        "A local peer left; teardown noise after a good run.",
    ),
    shape("proxy.error", "[Service thread] Error encountered progressing operation={!op}, res={!code:d}, closing connection", "2.17.1", "", "proxy.cc", AFTER),
    shape("proxy.call_failed", "Proxy Call to rank {!peer_rank:d} failed ({!op})", "2.12.7", "2.17.1", "proxy.cc", AFTER),
    shape("proxy.call_failed", "Socket recv failed while polling for opId={id}", "2.17.1", "", "proxy.cc", AFTER),
    shape("proxy.call_failed", "ncclProxyClientGetFd call to tpRank {!peer_rank:d} handle {handle} failed : {code:d}", "2.20.3", "", "proxy.cc", AFTER),
    shape(
        "proxy.connected",
        "Connected to proxy localRank {peer:d} -> connection",
        "2.12.7",
        "",
        "proxy.cc",
        "A rank talks to its proxy thread; says nothing of the connections to other ranks.",
    ),
    shape(
        "proxy.closed",
        "[Service thread] Connection closed by localRank {peer:d}",
        "2.12.7",
        "",
        "proxy.cc",
        "A local rank closed its proxy connection: normal at teardown, in the middle of a run that rank left.",
    ),
    shape("proxy.call_failed", "ncclProxyCallBlockingUDS call to tpRank {!peer_rank:d}({hash}) failed : {code:d}", "2.20.3", "", "proxy.cc", AFTER),
    shape("proxy.poll_failed", "[Proxy Service UDS] Poll failed: {!error}", "2.20.3", "", "proxy.cc", "The proxy's local thread cannot wait for its socket.").any(),
];
