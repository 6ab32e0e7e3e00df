//! Rows of what `ncclras` prints (2.24.3+ as text, 2.29+ as JSON too) and of the diagnostics of 2.31+. The lines of a
//! report depend on the headings before them; the fold joins them.

use super::line;
use crate::event::shape::{Shape, shape};

const REPORT: &str = "client_support.cc";
const WHO: &str = "A process that the heading before it speaks of.";
const COUNT: &str = "How many operations a rank has launched, where the ranks differ. In a job that runs it is a moment's skew.";
const JSON: &str = "A line of the JSON report of ncclras.";
const P2P: &str = "The library's own test wrote to a peer GPU and read back something else: an IOMMU that translates, or ACS, redirects the transfer.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    line("ras.comm", "#{group:d}-{index:d} ({!comm:x}) INCOMPLETE", REPORT, "A communicator of which some ranks sent no data."),
    line("ras.comm", "#{group:d}-{index:d} ({!comm:x}) ERROR", REPORT, "A communicator with errors."),
    line("ras.comm", "#{group:d}-{index:d} ({!comm:x}) MISMATCH", REPORT, "A communicator whose ranks are in different states."),
    line("ras.missing_count", "Missing communicator data from {n:d} {!what:w}", REPORT, "So many processes or ranks did not answer RAS."),
    line("ras.dead_count", "{n:d} job process{text}considered dead", REPORT, "So many processes are unreachable for RAS."),
    line("ras.process", "Process {!pid:d} on node {!host:w} managing GPU{gpu}$", REPORT, WHO),
    line("ras.rank", "Rank {!rank:d} -- GPU{gpu} managed by process {pid:d} on node {host:w}", REPORT, WHO),
    line("ras.rank", "Rank {!rank:d} -- [process information not found]", REPORT, WHO),
    line("ras.counts", "Communicator ranks have different {!function:w} operation counts", REPORT, COUNT),
    line("ras.group_at", "{n:d} ranks have launched up to operation {op:d}", REPORT, COUNT),
    line("ras.group_at", "{n:d} ranks have not launched any operations", REPORT, COUNT),
    line("ras.rank_at", "Rank {!rank:d} has launched up to operation {n:d} -- GPU{gpu} managed by process {pid:d} on node {host:w}", REPORT, COUNT),
    line("ras.rank_at", "Rank {!rank:d} has launched up to operation {n:d} -- [process information not found]", REPORT, COUNT),
    line("ras.rank_at", "Rank {!rank:d} has not launched any operations -- {where}", REPORT, COUNT),
    line("ras.status", "Communicator ranks have different status", REPORT, "Some ranks of a communicator are further in its life than others."),
    line("ras.rank_status", "Rank {!rank:d} has status {!status:w} -- {where}", REPORT, "The state in which this rank holds the communicator."),
    line("ras.rank_error", "Rank {!rank:d} reported {!error} -- {where}", REPORT, "The error that this rank holds for the communicator."),
    line("ras.json", "\"communicators_count\": {communicators:d}", REPORT, JSON),
    line("ras.json", "\"collection_time_sec\": {end:f}", REPORT, JSON),
    line("ras.json", "\"hash\": \"0x{hash:x}\"", REPORT, JSON),
    line("ras.json", "\"rank\": {rank:d}", REPORT, JSON),
    line("ras.json", "\"host\": \"{host}\"", REPORT, JSON),
    line("ras.json", "\"pid\": {pid:d}", REPORT, JSON),
    line("ras.json", "\"considered_dead\": {dead:w}", REPORT, JSON),
    line("ras.json", "\"AllReduce\": {AllReduce:d}", REPORT, JSON),
    line("ras.json", "\"AllGather\": {AllGather:d}", REPORT, JSON),
    line("ras.json", "\"ReduceScatter\": {ReduceScatter:d}", REPORT, JSON),
    line("ras.json", "\"Broadcast\": {Broadcast:d}", REPORT, JSON),
    line("ras.json", "\"Reduce\": {Reduce:d}", REPORT, JSON),
    shape("p2p.verification_error", "*p2p: read mismatch {pair} expected={expected:w} got={got:w}", "2.31.2", "", "", P2P).any(),
    shape("p2p.verification_error", "*p2p: write mismatch {pair} expected={expected:w} got={got:w}", "2.31.2", "", "", P2P).any(),
    shape("kernel.xid", "*Xid {!xid:d} detected {text} on host {!device}.", "2.32.3", "", "", "The library found an Xid of the GPU driver in a node's kernel log.").any(),
    shape(
        "diag.xid_harmless",
        "*Xid {!xid:d} detected {text} on host {!device}. No user action or further investigation is required",
        "2.32.3",
        "",
        "",
        "The library found an Xid that needs no action.",
    )
    .any(),
    shape("diag.iommu", "*IOMMU mode: {!mode} on {n:d} device(s); first rank {rank:d} device {device}", "2.32.3", "", "", "Devices whose IOMMU mode stands out.").any(),
    shape("diag.iommu", "*IOMMU mode: {!mode} across {n:d} relevant device(s)", "2.32.3", "", "", "The IOMMU mode of the GPUs and NICs.").any(),
    shape("diag.iommu", "*IOMMU mode: {!mode} for {n:d} relevant device(s)", "2.32.3", "", "", "The IOMMU mode of the GPUs and NICs.").any(),
    shape("diag.ats", "*ATS state: {!text}", "2.32.3", "", "", "Whether NICs may use the IOMMU's address translation (ATS).").any(),
    shape(
        "diag.driver_mismatch",
        "*driver version: mismatch across {n:d} ranks in comm {comm:w} rank(s) {!ranks} differ from rank {other:d} ({version})",
        "2.31.2",
        "",
        "",
        "The GPU drivers of a communicator's nodes differ.",
    )
    .any(),
];
