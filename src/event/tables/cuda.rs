//! CUDA and memory failures as the library reports them. Sources: `src/include/checks.h`, `src/misc/cudawrap.cc`, `src/include/alloc.h`.

use crate::event::shape::{Shape, shape};

const FAILURE: &str = "A CUDA or HIP call failed; the quoted text decides what it means.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    shape("cuda.failure", "Cuda failure '{!text}'", "2.9.6", "", "include/checks.h", FAILURE).any(),
    shape("cuda.failure", "Cuda failure {code:d} '{!text}'", "2.19.1", "", "misc/cudawrap.cc", FAILURE).any(),
    shape("cuda.failure", "HIP failure '{!text}'", "", "", "RCCL include/checks.h", FAILURE).any(),
    shape("cuda.failure", "HIP failure: '{!text}'", "", "", "RCCL include/checks.h", FAILURE).any(),
    shape("cuda.failure", "HIP failure {code:d} '{!text}'", "", "", "RCCL include/checks.h", FAILURE).any(),
    shape("cuda.failure_info", "{file}:{line:d} Cuda failure '{!text}'", "2.5.6", "", "include/checks.h", "A CUDA call failed where the library can go on, or on its way up."),
    shape(
        "cuda.failure_info",
        "{file}:{line:d} Cuda failure {code:d} '{!text}'",
        "2.19.1",
        "",
        "include/checks.h",
        "A CUDA call failed where the library can go on, or on its way up.",
    ),
    shape("cuda.failure", "Cuda failure {!text}", "2.4.2", "2.8.4", "include/checks.h", FAILURE),
    shape("cuda.alloc_failed", "Failed to malloc {size:d} bytes", "2.14.3", "", "include/alloc.h", "Memory could not be allocated.").any(),
    shape("cuda.alloc_failed", "Failed to CUDA {!what} {size:d} bytes", "2.14.3", "", "include/alloc.h", "GPU memory could not be allocated.").any(),
    shape(
        "cuda.pfn",
        "CUDA some PFN functions not found in the library",
        "2.13.4",
        "",
        "misc/cudawrap.cc",
        "The driver is older than the library expects; optional functions are missing.",
    ),
    shape(
        "cuda.no_driver_library",
        "Failed to find CUDA library{text}",
        "2.13.4",
        "",
        "misc/cudawrap.cc",
        "The CUDA driver library is not visible (container without GPU runtime).",
    )
    .any(),
    shape("cuda.stack", "Stack size limit ({text}) is unsafe{text2}", "2.28.3", "", "misc/utils.cc", "ulimit -s is unlimited; harmless."),
];
