//! Rows of the application itself: Python's last words, signals and the dynamic loader.

use super::line;
use crate::event::shape::Shape;

const PY: &str = "python";
const EXCEPTION: &str = "A Python exception ended the program or one of its threads. If it stands before the communication errors, it is the cause and they are its messengers.";
const SEGV: &str = "The process crashed with an invalid memory access. The other ranks then lose their peer.";
const BUS: &str = "The process touched shared memory that has no room behind it, mostly /dev/shm of a container.";
const ABORTED: &str = "The process ended itself with SIGABRT, mostly after an uncaught exception. A consequence; the reason stands before.";
const KILLED: &str = "The process was killed with SIGKILL, by the kernel for lack of memory, by a container limit or by its launcher.";
const MISSING: &str = "A file that the program needs is not there on this node.";
const THREADS: &str = "The kernel refused a new thread: the limit on processes of the user, the service or the container.";
const SYMBOL: &str = "Two libraries of different builds are loaded together. For ncclXxx symbols a second, other NCCL is found first.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    line("app.exception", "{!type:i}Error: {!text}", PY, EXCEPTION),
    line("app.exception", "{!type:i}Error$", PY, EXCEPTION),
    line("app.exception", "{!type:i}xception: {!text}", PY, EXCEPTION),
    line("app.exception", "{!type:i}queue.Empty$", PY, EXCEPTION),
    line("app.exception", "ERROR {}] {!type:i}Error: {!text}", "vllm/logger.py", EXCEPTION),
    line("app.nccl_error", "*Failed, NCCL error {file:w} '{!text}'", "nccl documentation", "An NCCL call of the program failed. The cause is in NCCL's own lines."),
    line("app.cuda_error", "*Failed: Cuda error {file:w} '{!text}'", "nccl documentation", "A CUDA call of the program failed."),
    line("app.thread_exception", "Exception in thread {!thread}:$", PY, "A thread of the program ended with the exception that follows."),
    line("app.interrupted", "KeyboardInterrupt$", PY, "Somebody stopped the program by hand."),
    line("app.interrupted", "^CTraceback (most recent call last)", PY, "Somebody stopped the program by hand."),
    line("app.traceback", "Traceback (most recent call last):", PY, "An exception's stack follows; the exception itself is at its end."),
    line("app.missing_file", "{!type:i}Error: {}[Errno 2] No such file or directory: '{!path}'", PY, MISSING),
    line("app.missing_file", "RuntimeError: {}Could not open file {!path}: No such file or directory", "dali/util/std_file.cc", MISSING),
    line("app.fd_limit", "*[Errno 24] Too many open files", PY, "The process has no file descriptor left: raise `ulimit -n`."),
    line("app.fd_limit", "*CCOM WARN {text} : Too many open files", "neuron", "The process has no file descriptor left: raise `ulimit -n`."),
    line("app.fd_limit", "*received 0 items of ancdata", "multiprocessing", "A descriptor could not be handed over: the process has none left."),
    line("app.thread_limit", "RuntimeError: can't start new thread", PY, THREADS),
    line("app.thread_limit", "libgomp: Thread creation failed: {!error}", "libgomp", THREADS),
    line("app.thread_limit", "OpenBLAS blas_thread_init: pthread_create failed for thread {thread:d} of {threads:d}: {!error}", "openblas", THREADS),
    line("app.undefined_symbol", "*undefined symbol: {!symbol:i}", "ld.so", SYMBOL),
    line("app.undefined_symbol", "*symbol lookup error: {library}: undefined symbol: {!symbol:i}", "ld.so", SYMBOL),
    line("app.undefined_symbol", "ImportError: {library}: undefined symbol: {!symbol:i}", "ld.so", SYMBOL),
    line("app.missing_library", "ImportError: {!library}: cannot open shared object file{text}", "ld.so", "A shared library is not installed or not on the loader's path."),
    line("app.missing_library", "OSError: {!library}: cannot open shared object file{text}", "ld.so", "A shared library is not installed or not on the loader's path."),
    line("app.segfault", "*Caught signal 11 (Segmentation fault", "ucs/debug/debug.c", SEGV),
    line("app.segfault", "Fatal Python error: Segmentation fault", PY, SEGV),
    line("app.segfault", "*Signal: Segmentation fault (11)", "opal/util/stacktrace.c", SEGV),
    line("app.segfault", "*Segmentation fault~(core dumped)", "bash", SEGV),
    line("app.segfault", "Segmentation fault$", "bash", SEGV),
    line("app.segfault", "*!!!!!!! Segfault encountered !!!!!!!", "torch/csrc", SEGV),
    line("app.bus_error", "*Caught signal 7 (Bus error", "ucs/debug/debug.c", BUS),
    line("app.bus_error", "Fatal Python error: Bus error", PY, BUS),
    line("app.bus_error", "*Signal: Bus error (7)", "opal/util/stacktrace.c", BUS),
    line("app.bus_error", "*Bus error~(core dumped)", "bash", BUS),
    line("app.bus_error", "Bus error$", "bash", BUS),
    line("app.bus_error", "*DataLoader worker (pid {pid:d}) is killed by signal: Bus error.", "torch/utils/data", BUS),
    line("app.bus_error", "*Unexpected bus error encountered in worker. This might be caused by insufficient shared memory", "torch/utils/data", BUS),
    line("app.abort", "Fatal Python error: Aborted", PY, ABORTED),
    line("app.abort", "*Aborted~(core dumped)", "bash", ABORTED),
    line("app.abort", "Aborted$", "bash", ABORTED),
    line("app.abort", "*Signal: Aborted (6)", "opal/util/stacktrace.c", ABORTED),
    line("app.fatal", "Fatal Python error: {!text}", PY, "The interpreter itself died."),
    line("app.fatal", "*GGML_ASSERT({!text}) failed", "ggml", "A check of llama.cpp failed, and it ends itself."),
    line("app.fatal", "*: Assertion `{!text}' failed.", "glibc", "A check in the program or in one of its libraries failed, and it ends itself."),
    line("app.terminate", "terminate called after throwing an instance of '{!type}'", "libstdc++", "An uncaught C++ exception ended the process; its text follows."),
    line("app.terminate", "~what(): {!text}", "libstdc++", "The text of an uncaught C++ exception."),
    line("app.killed", "Killed$", "bash", KILLED),
    line("app.killed", "*line {:d}: {pid:d} Killed {command}", "bash", KILLED),
    line(
        "app.killed",
        "*DataLoader worker (pid {pid:d}) is killed by signal: {!signal:i}",
        "torch/utils/data",
        "A data loading process was killed; for `Killed` look for the out-of-memory killer, for `Bus error` at /dev/shm.",
    ),
];
