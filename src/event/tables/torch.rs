//! Rows of torch: `ProcessGroupNCCL`, the store, gloo and what exceptions quote. The prefix by age is `[Rank 1]` (1.x … 2.1),
//! `[PG 1 Rank 0]` (early 2.4) or `[PG ID 0 PG GUID 0(default_pg) Rank 1]` (2.4+); `pg` is what stands between `PG` and `Rank`.

use super::line;
use crate::event::shape::{Shape, shape};

const PG: &str = "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp";
const STORE: &str = "torch/csrc/distributed/c10d/TCPStore.cpp";
const SOCKET: &str = "torch/csrc/distributed/c10d/socket.cpp";
const C10D: &str = "torch/distributed/distributed_c10d.py";

const TIMEOUT: &str = "A collective was still running when its timeout expired. Says which one and where, but not why: the cause is usually on another rank or earlier.";
const STATUS: &str = "How far this rank's process group came: the last collective it enqueued and the last it completed. -1 means that not even the first one finished.";
const DUMP: &str = "The ranks tell each other to write debug data after a timeout. The sentence on incorrect usages of collectives is always printed and proves nothing.";
const ABORT: &str = "torch takes the process down after a failed or timed out collective. A consequence.";
const TERMINATE: &str = "The watchdog thread ended with this exception and the process dies. The text is the reason as this rank saw it.";
const RESULT: &str = "NCCL's result code as torch or a wrapper words it. The text below `Last error:` says more.";
const UNIQUE_ID: &str = "The rank could not fetch the communicator's id from the store: the rank that creates it never came or died before.";
const RESET: &str = "The connection to the store on rank 0's node broke. Either that process died or, at the end of a run, it simply left first.";
const BARRIER: &str = "Not all ranks reached the store barrier in time: worker_count of world_size came, the others are missing.";
const CUDA: &str = "A CUDA or HIP call or kernel failed on this GPU. Reported asynchronously, so the place in the stack trace may be wrong.";
const OOM: &str = "torch found no room on the GPU for this allocation. Other ranks then wait in vain.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    // Timeouts, one shape for each age of the text.
    shape(
        "torch.watchdog_timeout",
        "*Rank {pg_rank:d}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={!seq:d}, OpType={!op}, NumelIn={numel_in:d}, NumelOut={numel_out:d}, Timeout(ms)={timeout_ms:d}) ran for {ran_ms:d} milliseconds",
        "2.1",
        "",
        PG,
        TIMEOUT,
    )
    .any(),
    shape(
        "torch.watchdog_timeout",
        "*Rank {pg_rank:d}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={!seq:d}, OpType={!op}, TensorShape=[{shape}], Timeout(ms)={timeout_ms:d}) ran for {ran_ms:d} milliseconds",
        "1.9",
        "2.0",
        PG,
        TIMEOUT,
    )
    .any(),
    shape(
        "torch.watchdog_timeout",
        "*Rank {pg_rank:d}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={!seq:d}, OpType={!op}, Timeout(ms)={timeout_ms:d}) ran for {ran_ms:d} milliseconds",
        "1.9",
        "2.0",
        PG,
        TIMEOUT,
    )
    .any(),
    shape(
        "torch.watchdog_timeout",
        "*Rank {pg_rank:d}] Watchdog caught collective operation timeout: WorkNCCL(OpType={!op}, TensorShape=[{shape}], Timeout(ms)={timeout_ms:d}) ran for {ran_ms:d} milliseconds",
        "1.8",
        "1.8",
        PG,
        TIMEOUT,
    )
    .any(),
    line("torch.watchdog_timeout", "*WorkNCCL({}SeqNum={!seq:d}, OpType={!op},{}Timeout(ms)={timeout_ms:d}) ran for {ran_ms:d} milliseconds", PG, TIMEOUT),
    line("torch.watchdog_timeout", "*WorkNCCL(OpType={!op}, SeqNum={!seq:d}) ran for {ran_ms:d} ms before timing out", PG, TIMEOUT),
    line("torch.watchdog_timeout", "*Rank {pg_rank:d}] Watchdog caught collective operation timeout:", PG, TIMEOUT),
    line("torch.watchdog_timeout", "*Watchdog caught collective operation timeout:", PG, TIMEOUT),
    // A timeout's own text broken over lines.
    line("torch.watchdog_work", "WorkNCCL(SeqNum={!seq:d}, OpType={!op},{}Timeout(ms)={timeout_ms:d})$", PG, TIMEOUT),
    // How far each rank came.
    shape(
        "torch.watchdog_status",
        "*[PG {pg} Rank {pg_rank:d}] Exception (either an error or timeout) detected by watchdog at work: {at:d}, last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}",
        "2.4",
        "2.5",
        PG,
        STATUS,
    )
    .any(),
    shape(
        "torch.watchdog_status",
        "*[PG {pg} Rank {pg_rank:d}] Timeout at NCCL work: {at:d}, last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}",
        "2.4",
        "2.5",
        PG,
        STATUS,
    )
    .any(),
    shape(
        "torch.watchdog_status",
        "*[PG {pg} Rank {pg_rank:d}]~failure detected by watchdog at work sequence id: {at:d} PG status: last enqueued work: {!enqueued:d}, last completed work: {!completed:d}",
        "2.6",
        "",
        PG,
        STATUS,
    )
    .any(),
    line("torch.watchdog_status", "*detected by watchdog at work: {at:d}, last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}", PG, STATUS),
    line("torch.watchdog_status", "*Timeout at NCCL work: {at:d}, last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}", PG, STATUS),
    line("torch.watchdog_status", "*last enqueued work: {!enqueued:d}, last completed work: {!completed:d}", PG, STATUS),
    // Debug dumps.
    shape(
        "torch.dump_signal",
        "*[PG {pg} Rank {pg_rank:d}] Received a dump signal due to a collective timeout from this local rank and {} Last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}",
        "2.4",
        "",
        PG,
        DUMP,
    )
    .any(),
    shape(
        "torch.dump_signal",
        "*[PG {pg} Rank {pg_rank:d}] Received a dump signal due to a collective timeout from~rank {!from:d} and {} Last enqueued NCCL work: {!enqueued:d}, last completed NCCL work: {!completed:d}",
        "2.4",
        "",
        PG,
        DUMP,
    )
    .any(),
    line("torch.dump_signal", "*Received a dump signal {text}", PG, DUMP),
    line("torch.dump_signal", "*First PG on this rank to signal dumping", PG, DUMP),
    line("torch.dump_signal", "*Observed flight recorder dump signal from another rank via TCPStore", PG, DUMP),
    line("torch.flight", "*ProcessGroupNCCL preparing to dump debug info. Include stack trace:", PG, "The flight recorder writes its file. A consequence of a timeout."),
    line("torch.flight", "*Stack trace of the failed collective{text}", PG, "Where in the program the collective was called, or that the flight recorder is off."),
    line("torch.flight", "*Exception thrown when waiting for future Flight recorder dump", PG, "The flight recorder's file was not finished before the process died."),
    line("torch.heartbeat", "*Heartbeat monitor timed out! Process will be terminated {text}", PG, "The watchdog thread itself stood still, often inside a CUDA call that waits for a stuck kernel."),
    line("torch.heartbeat", "*Terminating the process after attempting to dump debug info, due to {text}", PG, "The monitor thread kills the process after a stuck watchdog or a collective timeout."),
    line("torch.heartbeat", "*watchdog got stuck for {seconds:d} seconds without making progress", PG, "The watchdog thread itself stood still, often inside a CUDA call that waits for a stuck kernel."),
    // Consequences.
    line("torch.abort", "*Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels,", PG, ABORT),
    line("torch.abort", "*To avoid data inconsistency, we are taking the entire process down", PG, ABORT),
    line("torch.terminate", "*[PG {pg} Rank {pg_rank:d}] Process group watchdog thread terminated with exception: {!text}", PG, TERMINATE),
    line("torch.terminate", "*Process group watchdog thread terminated with exception: {!text}", PG, TERMINATE),
    line("torch.terminate", "*NCCL watchdog thread terminated with exception: {!text}", PG, TERMINATE),
    line("torch.terminate", "terminate called after throwing an instance of 'c10::{!text}'", PG, TERMINATE),
    // NCCL errors as torch words them.
    shape(
        "torch.nccl_error",
        "*[Rank {pg_rank:d}] Collective WorkNCCL(SeqNum={!seq:d}, OpType={!op},{}) raised the following async exception: NCCL error: {!text}, NCCL version {version:w}",
        "2.0",
        "",
        PG,
        "The communicator reported an error while this collective was in flight. The text is NCCL's result; the cause is in NCCL's own lines.",
    )
    .any(),
    line("torch.nccl_error", "*raised the following async exception: {!text}", PG, "The communicator reported an error while a collective was in flight."),
    line("torch.nccl_error", "*NCCL error in: {file}:{file_line:d}, {!text}, NCCL version {version:w}", PG, "An NCCL call failed. The text is NCCL's result; the cause stands below `Last error:` or in NCCL's own lines."),
    line("torch.nccl_error", "*NCCL error in: {!text}", PG, "An NCCL call failed; the cause is in NCCL's own lines."),
    line("torch.nccl_error", "*Process group watchdog thread terminated with exception: NCCL error: {!text}, NCCL version {version:w}", PG, TERMINATE),
    line("torch.nccl_error", "*NCCL watchdog thread terminated with exception: NCCL error: {!text}, NCCL version {version:w}", PG, TERMINATE),
    line("torch.nccl_error", "*[PG {pg} Rank {pg_rank:d}] Process group watchdog thread terminated with exception: NCCL error: {!text}, NCCL version {version:w}", PG, TERMINATE),
    line("torch.nccl_error", "*torch.distributed.DistBackendError: NCCL error in: {file}:{file_line:d}, {!text}, NCCL version {version:w}", PG, "An NCCL call failed. The text is NCCL's result; the cause stands below `Last error:` or in NCCL's own lines."),
    line("torch.nccl_error", "*torch.distributed.DistBackendError: {!text}", PG, "torch's NCCL back end failed; the text says where."),
    line("torch.nccl_error", "*RuntimeError: NCCL error: {!text}", "vllm/distributed/device_communicators/pynccl_wrapper.py", "An NCCL call of the framework's own wrapper failed. The cause is in NCCL's own lines."),
    line("torch.nccl_error", "*RuntimeError: NCCL Error {code:d}: {!text}", PG, "An NCCL call failed. The cause is in NCCL's own lines."),
    line("torch.nccl_result", "{!name:i}cclUnhandledCudaError: {text}", PG, RESULT),
    line("torch.nccl_result", "{!name:i}cclInternalError: {text}", PG, RESULT),
    line("torch.nccl_result", "{!name:i}cclInvalidArgument: {text}", PG, RESULT),
    line("torch.nccl_result", "{!name:i}cclInvalidUsage: {text}", PG, RESULT),
    line("torch.nccl_result", "{!name:i}cclRemoteError: {text}", PG, RESULT),
    line("torch.nccl_result", "{!name:i}cclSystemError: {text}", PG, RESULT),
    // vLLM puts its own prefix before every line of a traceback.
    line("torch.nccl_result", "ERROR {}] {!name:i}cclUnhandledCudaError: {text}", PG, RESULT),
    line("torch.nccl_result", "ERROR {}] {!name:i}cclInternalError: {text}", PG, RESULT),
    line("torch.nccl_result", "ERROR {}] {!name:i}cclInvalidArgument: {text}", PG, RESULT),
    line("torch.nccl_result", "ERROR {}] {!name:i}cclInvalidUsage: {text}", PG, RESULT),
    line("torch.nccl_result", "ERROR {}] {!name:i}cclRemoteError: {text}", PG, RESULT),
    line("torch.nccl_result", "ERROR {}] {!name:i}cclSystemError: {text}", PG, RESULT),
    line("torch.last_error", "ERROR {}] Last error:{text}", PG, "NCCL's own last warning follows; it is the evidence, unless it is that of a victim."),
    line("torch.last_error", "Last error:{text}", PG, "NCCL's own last warning follows; it is the evidence, unless it is that of a victim."),
    // The store.
    line("torch.unique_id_failed", "*is setting up NCCL communicator{text}", PG, UNIQUE_ID),
    line("torch.unique_id_failed", "*torch.distributed.DistBackendError: [{rank:d}] is setting up NCCL communicator{text}", PG, UNIQUE_ID),
    line(
        "torch.store_timeout",
        "*[{rank:d}] is setting up NCCL communicator and retrieving ncclUniqueId from [{root:d}] via c10d key-value store by store->get('{key}'), but store->get('{}') got error: {!text}",
        PG,
        UNIQUE_ID,
    ),
    line(
        "torch.store_reset",
        "*[{rank:d}] is setting up NCCL communicator and retrieving ncclUniqueId from [{root:d}] via c10d key-value store by store->get('{key}'), but store->get('{}') got error: Connection reset by peer",
        PG,
        UNIQUE_ID,
    ),
    line("torch.store_timeout", "*wait timeout after {ms:d}ms, keys: {!keys}", STORE, "The store answered, but the awaited key was never set: the rank that sets it did not come."),
    line("torch.store_timeout", "*DistStoreError: {!text}", STORE, "A store operation failed or timed out."),
    line("torch.store_clients", "*Timed out after {seconds:d} seconds waiting for clients. {got:d}/{want:d} clients joined", STORE, "Fewer processes than world_size connected to rank 0's store."),
    line("torch.store_connect", "*The client socket has timed out after {ms} while trying to connect to ({host}, {port:d})", SOCKET, "The store on rank 0's node cannot be reached: wrong MASTER_ADDR or port, a firewall, or it never started."),
    line("torch.store_retry", "*The client socket has failed to connect to {address:w} (errno: {!errno:d} - {text})", SOCKET, "One attempt to reach the store failed; it is repeated. Normal at the start."),
    line("torch.store_retry", "*The client socket cannot be initialized to connect to {address:w} (errno: {!errno:d} - {text})", SOCKET, "One kind of address was tried in vain and another one is taken. Harmless."),
    line("torch.store_bind", "*The server socket has failed to listen on any local network address{text}", SOCKET, "The store's port is taken, mostly by a left-over of an earlier run."),
    line("torch.store_reset", "*[c10d] recvValue failed on SocketImpl({}remote=[{!remote}): {text}", STORE, RESET),
    line("torch.store_reset", "*[c10d] sendBytes failed on SocketImpl({}remote=[{!remote}): {text}", STORE, RESET),
    line("torch.store_reset", "*[c10d] recvValueWithTimeout failed on SocketImpl({}remote=[{!remote}): {text}", STORE, RESET),
    line("torch.store_gone", "*Failed to check the \"should dump\" flag on TCPStore,{text}", PG, "The store is gone. Normal when rank 0 left first at the end, otherwise rank 0's process died."),
    line(
        "torch.store_barrier",
        "*Timed out initializing process group in store based barrier on rank: {rank:d}, for key: {key:w} (world_size={world:d}, worker_count={!count:d}, timeout={timeout})",
        C10D,
        BARRIER,
    ),
    line(
        "torch.store_barrier",
        "*Timed out initializing process group in store based barrier on rank {rank:d}, for key: {key:w} (world_size={world:d}, num_workers_joined={!count:d}, timeout={timeout}",
        C10D,
        BARRIER,
    ),
    line("torch.store_barrier", "*store based barrier to initialize process group for {seconds:d} seconds, rank: {rank:d}, key: {key:w} (world_size={world:d}, num_workers_joined={!count:d},", C10D, BARRIER),
    line("torch.store_barrier", "*store based barrier to initialize process group for rank: {rank:d}, key: {key:w} (world_size={world:d}, worker_count={!count:d},", C10D, BARRIER),
    line("torch.store_barrier_done", "*Completed store-based barrier for key:{key:w} with {world:d} nodes", C10D, "All ranks met at the store."),
    line("torch.store_barrier_join", "*Added key: store_based_barrier_key:{key:d} to store for rank: {rank:d}", C10D, "This rank reached the store barrier."),
    line("torch.missing_ranks", "*Ranks {!ranks} failed to pass monitoredBarrier in {ms:d} ms", "torch/csrc/distributed/c10d/ProcessGroupGloo.cpp", "These ranks did not reach the barrier."),
    line("torch.missing_ranks", "*Rank {!ranks:d} failed to pass monitoredBarrier in {ms:d} ms", "torch/csrc/distributed/c10d/ProcessGroupGloo.cpp", "This rank did not reach the barrier."),
    // The GPU.
    line("torch.oom", "*CUDA out of memory. Tried to allocate {size:f} {unit}iB. GPU {!gpu:d} has a total capa", "c10/cuda/CUDACachingAllocator.cpp", OOM),
    line("torch.oom", "*CUDA out of memory. Tried to allocate {size:f} {unit}iB (GPU {!gpu:d};", "c10/cuda/CUDACachingAllocator.cpp", OOM),
    line("torch.oom", "*CUDA out of memory. Tried to allocate {size:f} {unit}iB", "c10/cuda/CUDACachingAllocator.cpp", OOM),
    line("torch.oom", "*HIP out of memory. Tried to allocate {size:f} {unit}iB. GPU {!gpu:d} has a total capa", "c10/hip/HIPCachingAllocator.cpp", OOM),
    line("torch.oom", "*HIP out of memory. Tried to allocate {size:f} {unit}iB (GPU {!gpu:d};", "c10/hip/HIPCachingAllocator.cpp", OOM),
    line("torch.oom", "*HIP out of memory. Tried to allocate {size:f} {unit}iB", "c10/hip/HIPCachingAllocator.cpp", OOM),
    line("torch.oom", "*CUDA error: out of memory", "c10/cuda/CUDAException.cpp", OOM),
    line("torch.oom", "*HIP error: out of memory", "c10/hip/HIPException.cpp", OOM),
    line("torch.cuda_error", "*CUDA error: {!text}", "c10/cuda/CUDAException.cpp", CUDA),
    line("torch.cuda_error", "*HIP error: {!text}", "c10/hip/HIPException.cpp", CUDA),
    line("torch.cuda_error", "*Unexpected error from cudaGetDeviceCount(){}Error {code:d}: {!text}", "c10/cuda/CUDAFunctions.cpp", CUDA),
    line("torch.cuda_error", "*Unexpected error from hipGetDeviceCount(){}Error {code:d}: {!text}", "c10/hip/HIPFunctions.cpp", CUDA),
    line("torch.cuda_error", "*The NVIDIA driver on your system is {!text}", "c10/cuda/CUDAFunctions.cpp", CUDA),
    line("torch.cuda_error", "*Process group watchdog thread terminated with exception: CUDA error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*Process group watchdog thread terminated with exception: HIP error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*NCCL watchdog thread terminated with exception: CUDA error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*NCCL watchdog thread terminated with exception: HIP error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*[PG {pg} Rank {pg_rank:d}] Process group watchdog thread terminated with exception: CUDA error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*[PG {pg} Rank {pg_rank:d}] Process group watchdog thread terminated with exception: HIP error: {!text}", PG, CUDA),
    line("torch.cuda_error", "*[Rank {pg_rank:d}] NCCL watchdog thread terminated with exception: CUDA error: {!text}", PG, CUDA),
    // Checks that name the difference between ranks.
    line(
        "torch.ddp_mismatch",
        "*DDP expects same model across all ranks, but Rank {rank:d} has {params:d} params, while rank {other:d} has inconsistent {other_params:d} params",
        "torch/csrc/distributed/c10d/reducer.cpp",
        "The ranks' models differ. After a failed first collective with 0 params on the other side it is a red herring: the answer was never received.",
    ),
    line("torch.collective_mismatch", "*Detected mismatch between collectives on ranks. Rank {rank:d} is running collective: {!text}", "torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp", "The ranks called different collectives or shapes."),
    line(
        "torch.fingerprint",
        "*[Rank {rank:d}] Running collective: CollectiveFingerPrint(SequenceNumber={!seq:d}, OpType={!op}, TensorShape=[{shape}]",
        "torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
        "The collective that this rank is about to call, with TORCH_DISTRIBUTED_DEBUG=DETAIL.",
    ),
    line("torch.barrier_device", "*using GPU {!gpu:d} to perform barrier as devices used by this process are currently unknown", PG, "torch guesses the GPU of a barrier. A wrong guess puts two ranks on one GPU."),
    line("torch.not_destroyed", "*destroy_process_group() was not called before program exit", PG, "The program ended without closing its process group. Harmless."),
    line("torch.not_destroyed", "*process group has NOT been destroyed before we destruct ProcessGroupNCCL", PG, "The program ended without closing its process group. Harmless."),
    // gloo carries torch's CPU collectives.
    line("gloo.connected", "*[Gloo] Rank {rank:d} is connected to {got:d} peer ranks. Expected number of connected peer ranks is : {want:d}", "gloo/transport/tcp", "All ranks of a CPU group found each other."),
    line("gloo.error", "*gloo/transport/tcp/{file:w} {!text}", "gloo/transport/tcp", "A CPU connection between two ranks failed: the peer died, or GLOO_SOCKET_IFNAME picks an interface that does not reach it."),
    line("gloo.error", "*Gloo connectFullMesh failed with {!text}", "gloo/transport/tcp", "The CPU group could not connect: GLOO_SOCKET_IFNAME picks an interface that does not reach the others."),
    line("gloo.interface", "*Unable to find address for: {!if:w}", "gloo/transport/tcp/device.cc", "GLOO_SOCKET_IFNAME names an interface that this node does not have."),
];
