//! Rows of nccl-tests and rccl-tests.

use super::line;
use crate::event::shape::Shape;

const SRC: &str = "nccl-tests/src/common.cu";
const ROW: &str = "A result row: this collective finished at this size. Proof that the path works, and how fast.";
const FAILURE: &str = "A CUDA, HIP or NCCL call of the test failed. NCCL's own warning says why.";

/// The rows of one data type: with a root column (2.0.8 …), and without it.
macro_rules! results {
    ($($ty:literal),*) => {
        &[$(
            line("nccl_tests.row", concat!("~{size:d} {count:d} ", $ty, " {redop:w} {root:d} {time_us:f} {algbw:f} {busbw:f} {wrong:w}"), SRC, ROW),
            line("nccl_tests.row", concat!("~{size:d} {count:d} ", $ty, " {redop:w} {time_us:f} {algbw:f} {busbw:f} {wrong:w}"), SRC, ROW),
        )*
        line("nccl_tests.header", "# nThread {threads:d} nGpus {gpus:d} minBytes {min:d} maxBytes {max:d}", SRC, "A test starts."),
        line("nccl_tests.header", "nThread {threads:d} nGpus {gpus:d} minBytes {min:d} maxBytes {max:d}", SRC, "A test starts."),
        line("nccl_tests.table", "#~(B)~(elements)", SRC, "The head of the result table. With no row after it the first collective stands still."),
        line("nccl_tests.rank", "#~Rank {rank:d} Group {group:d} Pid {pid:d} on {host:w} device {dev:d} [{bus}] {!name}", SRC, "Which process and GPU a rank of the test is."),
        line("nccl_tests.rank", "#~Rank {rank:d} Pid {pid:d} on {host:w} device {dev:d} [{bus}] {!name}", SRC, "Which process and GPU a rank of the test is."),
        line("nccl_tests.version", "# rccl-tests version {version:w}", SRC, "The test program's version."),
        line("nccl_tests.version", "rccl-tests: Version {version:w}", SRC, "The test program's version."),
        line("nccl_tests.version", "# nccl-tests version {version:w}", SRC, "The test program's version."),
        line("nccl_tests.failure", "*Test NCCL failure {file:w} '{!text}", SRC, FAILURE),
        line("nccl_tests.failure", "*Test CUDA failure {file:w} '{!text}'", SRC, FAILURE),
        line("nccl_tests.failure", "*Test HIP failure {file:w} '{!text}'", SRC, FAILURE),
        line("nccl_tests.failure", "Cuda failure common.cu:{file_line:d} '{!text}'", SRC, FAILURE),
        line("nccl_tests.failure", "NCCL failure common.cu:{file_line:d} '{!text}'", SRC, FAILURE),
        line("nccl_tests.failure", "*.. {host:w} pid {pid:d}: Test failure {file:w}", SRC, "A process of the test gives up after the failure above."),
        line("nccl_tests.done", "# Out of bounds values~: {wrong:d} {!verdict:w}", SRC, "The test ran to its end. `OK` means that the results were right."),
        line("nccl_tests.done", "# Avg bus bandwidth~: {busbw:f}", SRC, "The test ran to its end."),
        ]
    };
}

/// The rows.
pub const SHAPES: &[Shape] = results!("float", "half", "double", "bfloat16", "int8", "uint8", "int32", "uint32", "int64", "uint64", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2");
