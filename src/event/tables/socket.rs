//! Sockets: bootstrap, proxy, NET/Socket and the handshakes of NET/IB share them. Source: `src/misc/socket.cc`.

use crate::event::shape::{Shape, Stage, shape};

const CLOSED: &str = "The peer ended or aborted first; look for the first rank with another error.";
const UNREACHABLE: &str = "The peer's advertised address cannot be reached: wrong interface, firewall, or nobody listens there.";
const RETRY: &str = "The peer does not listen yet. A few at the start are normal when ranks start unevenly.";
const FOREIGN: &str = "Something else connected: another job, a port scanner, or a rank with other settings or another library.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("socket.closed", "Net : Connection closed by remote peer$", "2.5.6", "2.9.9", "include/socket.h", CLOSED).any(),
    shape("socket.closed", "Net : Connection closed by remote peer {!peer}", "2.10.3", "2.15.5", "misc/socket.cc", CLOSED).any(),
    shape("socket.closed", "{func:i}: Connection closed by remote peer {!peer}", "2.16.2", "", "misc/socket.cc", CLOSED).any(),
    shape("socket.closed", "{func:i}: Connection closed by remote peer$", "2.16.2", "", "misc/socket.cc", CLOSED).any(),
    shape("socket.closed", "Net : Connection closed by {text}", "2.5.6", "", "misc/socket.cc", CLOSED),
    shape("socket.error", "Call to recv failed~: {!error}", "2.5.6", "2.9.9", "include/socket.h", "Receiving failed; the text says why.").any(),
    shape("socket.error", "Call to send failed~: {!error}", "2.5.6", "2.9.9", "include/socket.h", "Sending failed; the text says why.").any(),
    shape("socket.error", "Net : Call to {op} from {!peer} failed : {!error}", "2.10.3", "2.15.5", "misc/socket.cc", "Talking to the peer failed; the text says why.").any(),
    shape("socket.error", "Net : Call to {op} to {!peer} failed : {!error}", "2.10.3", "2.15.5", "misc/socket.cc", "Talking to the peer failed; the text says why.").any(),
    shape("socket.error", "{func:i}: Call to recv from {!peer} failed : {!error}", "2.16.2", "", "misc/socket.cc", "Receiving from the peer failed; the text says why.").any(),
    shape("socket.error", "{func:i}: Call to send to {!peer} failed : {!error}", "2.16.2", "", "misc/socket.cc", "Sending to the peer failed; the text says why.").any(),
    shape("socket.connect_failed", "Connect to {!addr} failed~: {!error}", "2.5.6", "2.9.9", "include/socket.h", UNREACHABLE).any(),
    shape("socket.connect_failed", "Net : Connect to {!addr} failed : {!error}", "2.10.3", "2.15.5", "misc/socket.cc", UNREACHABLE).any(),
    shape("socket.connect_failed", "{func:i}: Connect to {!addr} failed : {!error}", "2.16.2", "2.26.6", "misc/socket.cc", UNREACHABLE).any(),
    shape("socket.connect_failed", "{func:i}: connect to {!addr} failed : {!error}", "2.27.3", "", "misc/socket.cc", UNREACHABLE).any(),
    shape("socket.connect_failed", "socketPollConnect: Connect to {!addr} returned {code:d}({text}) errno {errno:d}({!error})", "2.20.3", "2.23.4", "misc/socket.cc", UNREACHABLE)
        .any(),
    shape("socket.connect_failed", "Call to connect failed~: {!error}", "2.2.12", "2.4.8", "include/socket.h", UNREACHABLE).any(),
    shape("socket.connect_retry", "Call to connect returned {!error}, retrying", "2.5.6", "2.23.4", "misc/socket.cc", RETRY),
    shape("socket.connect_retry", "Call to connect timeout{text}", "2.2.12", "2.23.4", "misc/socket.cc", RETRY),
    shape("socket.connect_retry", "{func:i}: connect returned {!error}, retrying ({retry:d}/{max:d})", "2.24.3", "2.26.6", "misc/socket.cc", RETRY),
    shape("socket.connect_retry", "{func:i}: connect to {!addr} returned {!error}, retrying ({retry:d}/{max:d})", "2.27.3", "", "misc/socket.cc", RETRY),
    shape("socket.retries_exceeded", "{func:i}: exceeded retries ({max:d})", "2.16.2", "2.23.4", "misc/socket.cc", "Nobody answered at the peer's address for about 20 seconds.")
        .any(),
    shape(
        "socket.retries_exceeded",
        "{func:i}: exceeded timeouts ({max:d})",
        "2.16.2",
        "2.23.4",
        "misc/socket.cc",
        "The peer's address did not answer at all: routed nowhere, or dropped by a firewall.",
    )
    .any(),
    shape("socket.retries_exceeded", "{func:i}: connect returned {!error}, exceeded error retry count ({max:d})", "2.24.3", "2.26.6", "misc/socket.cc", UNREACHABLE).any(),
    shape(
        "socket.retries_exceeded",
        "{func:i}: connect to {!addr} returned {!error}, exceeded error retry count after {max:d} attempts",
        "2.27.3",
        "",
        "misc/socket.cc",
        UNREACHABLE,
    )
    .any(),
    shape("socket.wrong_magic", "{func:i}: wrong magic {got:x} != {want:x}", "2.16.2", "2.26.6", "misc/socket.cc", FOREIGN).any(),
    shape("socket.wrong_magic", "{func:i} from {!peer}: wrong magic {got:x} != {want:x}", "2.27.3", "2.30.4", "misc/socket.cc", FOREIGN).any(),
    shape("socket.wrong_magic", "{func:i}: didn't receive a valid magic from {!peer}", "2.27.3", "", "misc/socket.cc", FOREIGN),
    shape("socket.wrong_magic", "{func:i} from {!peer}: socket magic mismatch (peer {got:x} != expected {want:x})", "2.30.7", "", "misc/socket.cc", FOREIGN),
    shape(
        "socket.wrong_type",
        "{func:i}: wrong type {!got:d} != {!want:d}",
        "2.16.2",
        "2.26.6",
        "misc/socket.cc",
        "The two ends use different networks: 3 is NET/Socket, 4 is NET/IB.",
    )
    .any(),
    shape(
        "socket.wrong_type",
        "{func:i} from {!peer}: wrong type {!got:d} != {!want:d}",
        "2.27.3",
        "2.30.4",
        "misc/socket.cc",
        "The two ends use different networks: 3 is NET/Socket, 4 is NET/IB.",
    )
    .any(),
    shape(
        "socket.wrong_type",
        "{func:i} from {!peer}: wrong socket type (peer {!got:d} != expected {!want:d}",
        "2.30.7",
        "",
        "misc/socket.cc",
        "The two ends use different networks.",
    )
    .any(),
    shape(
        "socket.handshake_closed",
        "{func:i}: peer {!peer} closed before magic handshake",
        "2.30.7",
        "",
        "misc/socket.cc",
        "Something connected and left at once (a health check).",
    ),
    shape(
        "socket.accept_failed",
        "{func:i}: Accept failed: {!error}",
        "2.18.1",
        "",
        "misc/socket.cc",
        "A connection could not be accepted; 'Too many open files' is the limit, anything at the end of a run is teardown.",
    )
    .any(),
    shape(
        "socket.accept_failed",
        "{func:i}: exceeded error retry count after {max:d} attempts, {!error}",
        "2.24.3",
        "",
        "misc/socket.cc",
        "Connections could not be accepted again and again.",
    )
    .any(),
    shape(
        "socket.create_failed",
        "ncclSocketInit: Socket creation failed : {!error}",
        "2.16.2",
        "2.23.4",
        "misc/socket.cc",
        "No socket could be opened; 'Too many open files' is the limit.",
    )
    .any(),
    shape("socket.create_failed", "Call to socket failed~: {!error}", "2.5.6", "", "misc/socket.cc", "No socket could be opened; 'Too many open files' is the limit.").any(),
    shape("socket.create_failed", "Net : Socket creation failed : {!error}", "2.5.6", "", "misc/socket.cc", "No socket could be opened; 'Too many open files' is the limit.").any(),
    shape(
        "socket.bad_state",
        "{func:i}: socket state (invalid|{state}",
        "2.16.2",
        "",
        "misc/socket.cc",
        "A socket is used in a state that does not allow it; mostly a consequence.",
    ),
    shape(
        "net.socket_truncated",
        "NET/Socket : peer {!peer} message truncated : receiving {got:d} bytes instead of {want:d}",
        "2.12.10",
        "",
        "transport/net_socket.cc",
        "The two ends disagree on the message size: different operations or different NCCL_ALGO, NCCL_PROTO or buffer settings.",
    )
    .any(),
    shape(
        "net.socket_truncated",
        "NET/Socket : message truncated : receiving {got:d} bytes instead of {want:d}",
        "2.5.6",
        "2.12.7",
        "transport/net_socket.cc",
        "The two ends disagree on the message size: different operations or settings.",
    )
    .any(),
    shape("system.thread_failed", "Thread creation failed: {!error}", "2.30.3", "", "include/checks.h", "The kernel refused a new thread; the text says why."),
    shape("system.call_failed", "Call to {!call:w} failed~: {!error}", "2.5.6", "", "checks.h", "A system call failed; the text says why.").any(),
    shape("system.call_retry", "Call to {!call:w} returned {!error}, retrying", "2.5.6", "", "checks.h", "A system call was interrupted and is tried again."),
    shape(
        "socket.using",
        "NET/Socket : Using {list}",
        "2.5.6",
        "",
        "transport/net_socket.cc",
        "The TCP interfaces that would carry data. From 2.5 it is printed only when IB was not taken.",
    )
    .at(Stage::NetDevices),
    shape("socket.using_old", "NET/Socket : {count:d} interfaces found", "2.2.12", "2.4.8", "transport/net_socket.cc", "TCP interfaces; printed always in these versions.")
        .at(Stage::NetDevices),
    shape("socket.threads", "NET/Socket: Using {threads:d} threads and {count:d} sockets per thread", "2.5.6", "", "transport/net_socket.cc", "Data really goes over TCP here."),
    shape("socket.threads", "NET/Socket : Using {threads:d} threads and {count:d} sockets per thread", "2.4.2", "", "transport/net_socket.cc", "Data really goes over TCP here."),
    shape("socket.no_interface", "NET/Socket : no interface found", "2.5.6", "", "transport/net_socket.cc", "No TCP interface fits NCCL_SOCKET_IFNAME.").any(),
    shape("socket.gdr_off", "NET/Socket : GPU Direct RDMA Disabled{text}", "2.5.6", "", "transport/net.cc", "TCP never uses GPU Direct RDMA; harmless."),
    shape("socket.wrong_magic", "Socket magic mismatch from {!peer} (peer {got:x} != expected {want:x})", "2.32.3", "", "misc/socket.cc", FOREIGN),
    shape(
        "socket.wrong_type",
        "Wrong socket type from {!peer} (peer {!got:d} != expected {!want:d}",
        "2.32.3",
        "",
        "misc/socket.cc",
        "The two ends use different networks: 3 is NET/Socket, 4 is NET/IB.",
    ),
    shape("socket.handshake_closed", "Peer {!peer} closed before socket hello", "2.32.3", "", "misc/socket.cc", "Something connected and left at once (a health check)."),
    shape("socket.connect_failed", "socketPollConnect to {!addr} failed with error {!error}", "2.27.3", "2.28.9", "misc/socket.cc", UNREACHABLE).any(),
    shape("socket.connect_failed", "ncclOsSocketPollConnect to {!addr} failed with error {!error}", "2.29.2", "", "os/linux.cc", UNREACHABLE).any(),
    shape(
        "socket.accept_failed",
        "{func:i}: exceeded error retry count ({max:d}), {!error}",
        "2.24.3",
        "2.26.6",
        "misc/socket.cc",
        "Connections could not be accepted again and again.",
    )
    .any(),
    shape("net.progress_error", "NET/Socket : socket progress error", "2.5.6", "", "transport/net_socket.cc", "A TCP data connection died; the line before says which and why.")
        .any(),
    shape("socket.closed", "Connection closed by remote peer", "2.2.12", "2.4.8", "include/socket.h", CLOSED).any(),
];
