//! Rows of the serving and training frameworks: stages that place a hang in time, and their own error texts.

use super::line;
use crate::event::shape::Shape;

/// Kinds that prove that a collective finished over the GPUs: the line is printed behind one.
pub const PROOF_OF_COLLECTIVE: &[&str] = &[
    "vllm.p2p_trusted",
    "vllm.p2p_cache",
    "vllm.custom_ar_off",
    "vllm.mq_handle",
    "vllm.rank_assigned",
    "vllm.load_start",
    "vllm.load_done",
    "vllm.kv_cache",
    "vllm.graph_register",
    "vllm.graph_done",
    "vllm.tps",
    "sglang.dist_end",
    "sglang.load_begin",
    "sglang.load_end",
    "sglang.kv_cache",
    "sglang.graph_begin",
    "sglang.ready",
    "sglang.memory_unbalanced",
    "tgi.shard_ready",
    "tgi.webserver",
    "nccl_tests.row",
    "nccl_tests.done",
    "megatron.iteration",
    "deepspeed.step",
    "train.step",
    "train.done",
    "mlperf.progress",
    "app.collective_result",
];

/// Kinds that prove that the framework has left its NCCL stage: all groups exist.
pub const NCCL_STAGE_OVER: &[&str] = &[
    "vllm.mq_handle",
    "vllm.rank_assigned",
    "vllm.load_start",
    "vllm.load_done",
    "vllm.kv_cache",
    "vllm.graph_register",
    "vllm.graph_done",
    "vllm.ready",
    "vllm.tps",
    "sglang.dist_end",
    "sglang.load_begin",
    "sglang.load_end",
    "sglang.kv_cache",
    "sglang.graph_begin",
    "sglang.ready",
    "tgi.shard_ready",
    "tgi.webserver",
    "megatron.iteration",
    "deepspeed.step",
    "train.step",
    "train.done",
    "mlperf.progress",
];

const PYNCCL: &str = "vllm/distributed/device_communicators/pynccl.py";
const CUSTOM_AR: &str = "vllm/distributed/device_communicators/custom_all_reduce.py";
const PARALLEL: &str = "vllm/distributed/parallel_state.py";
const ENGINE: &str = "vllm/v1/engine";
const RUNNER: &str = "vllm/worker";
const SGLANG: &str = "sglang/srt";
const TGI: &str = "text_generation_launcher";
const NCCL_NEXT: &str = "Printed before ncclCommInitRank and its warm-up all-reduce. As the last line it means that the rank stands in NCCL's start or in the first collective.";
const WAIT: &str = "A front process waits for its workers. Repeats until they are up and says nothing of the cause.";
const LOADED: &str = "Weights are loaded. Minutes before this line are normal.";
const KV: &str = "The profiling run is done, so collectives work.";
const DONE: &str = "The program says that all its work is done: what breaks behind this line is the noise of leaving.";
const GRAPHS: &str = "CUDA graphs are captured, so collectives work.";
const READY: &str = "The server answers requests.";
const SERVING: &str = "The server produces tokens.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    // vLLM
    line("vllm.engine_start", "*Initializing a V{engine:d} LLM engine (v{version}) with config:", "vllm/engine", "The engine process is up; nothing of NCCL yet."),
    line("vllm.engine_start", "*Initializing an LLM engine (v{version}) with config:", "vllm/engine", "The engine process is up; nothing of NCCL yet."),
    line("vllm.executor", "*Reducing Torch parallelism from {threads:d} threads to 1 to avoid", "vllm/executor", "Worker processes are about to start, before NCCL."),
    line("vllm.executor", "*Setting Triton cache manager to: vllm.", "vllm/triton_utils", "Worker processes are about to start, before NCCL."),
    line("vllm.executor", "*VLLM_TRACE_FUNCTION is enabled. It will record every function", "vllm/logger.py", "Function traces are on; everything is slower."),
    line("vllm.worker_ready", "*Worker ready; awaiting tasks", "vllm/executor/multiproc_worker_utils.py", "A worker process is up, before NCCL."),
    line(
        "vllm.world",
        "*world_size={world:d} rank={rank:d} local_rank={local:d} distributed_init_method={init:w} backend={backend:w}",
        PARALLEL,
        "This rank starts the rendezvous. One line a rank: count them.",
    ),
    line("vllm.library", "*Found nccl from library {!path:w}", "vllm/utils.py", "The NCCL library that is loaded."),
    line("vllm.library", "*Found nccl from environment variable VLLM_NCCL_SO_PATH={!path:w}", "vllm/utils.py", "The NCCL library that is loaded."),
    line("vllm.nccl_version", "*vLLM is using nccl=={!version:w}", PYNCCL, NCCL_NEXT),
    line("vllm.nccl_version", "*sglang is using nccl=={!version:w}", "sglang/srt/distributed/device_communicators/pynccl.py", NCCL_NEXT),
    line("vllm.p2p_trusted", "*Skipping P2P check and trusting the driver's P2P report", CUSTOM_AR, "Custom all-reduce is being set up; NCCL's warm-up all-reduce has finished."),
    line("vllm.p2p_cache", "*generating GPU P2P access cache in {path:w}", CUSTOM_AR, "vLLM tests P2P by itself, after NCCL's warm-up. A broken P2P path can hang here too."),
    line("vllm.p2p_cache", "*reading GPU P2P access cache from {path:w}", CUSTOM_AR, "The result of an earlier P2P test is used; NCCL's warm-up all-reduce has finished."),
    line(
        "vllm.custom_ar_off",
        "*Custom allreduce is disabled because {!text}",
        CUSTOM_AR,
        "vLLM leaves its own all-reduce and uses NCCL. `lacks GPU P2P capability` means slower traffic between the GPUs.",
    ),
    line("vllm.custom_ar_off", "*Custom allreduce is disabled due to {!text}", CUSTOM_AR, "The framework leaves its own all-reduce and uses NCCL."),
    line("vllm.symm_mem_off", "*SymmMemCommunicator: Device capability {capability:w} not supported", "vllm/distributed/device_communicators/symm_mem.py", "Harmless."),
    line("vllm.mq_handle", "*vLLM message queue communication handle: Handle(", PARALLEL, "NCCL and custom all-reduce are set up on rank 0."),
    line("vllm.rank_assigned", "*rank {!rank:d} in world size {world:d} is assigned as DP rank {text}", PARALLEL, "All groups exist: the NCCL stage is over on this rank."),
    line("vllm.load_start", "*Starting to load model {model:w}", RUNNER, "Loads weights: the NCCL stage is over. Minutes are normal from here."),
    line(
        "vllm.load_progress",
        "*Loading safetensors checkpoint shards:~{percent:d}% Completed | {done:d}/{total:d}",
        "vllm/weight_utils.py",
        "Weights are being read: the NCCL stage is over, and nothing hangs where the count grows.",
    ),
    line("vllm.load_done", "*Loading weights took {seconds:f} seconds", RUNNER, LOADED),
    line("vllm.load_done", "*Loading model weights took {gb:f} GB", RUNNER, LOADED),
    line("vllm.load_done", "*Model loading took {gb:f} G{} and {seconds:f} seconds", RUNNER, LOADED),
    line("vllm.kv_cache", "*# GPU blocks: {blocks:d}, # CPU blocks: {:d}", RUNNER, KV),
    line("vllm.kv_cache", "*GPU KV cache size: {tokens:w} tokens", RUNNER, KV),
    line("vllm.kv_cache", "*Maximum concurrency for {tokens:w} tokens per request: {text}", RUNNER, KV),
    line("vllm.graph_register", "*Registering {count:d} cuda graph addresses", CUSTOM_AR, GRAPHS),
    line("vllm.graph_done", "*Graph capturing finished in {seconds:f} secs", RUNNER, GRAPHS),
    line("vllm.graph_done", "*init engine (profile, create kv cache, warmup model) took {seconds:f} seconds", ENGINE, GRAPHS),
    line(
        "vllm.shm_wait",
        "*No available shared memory broadcast block found",
        "vllm/distributed/device_communicators/shm_broadcast.py",
        "A process waited a minute for the next message of another one. A sign of a stall, not of a small /dev/shm and not of broken P2P.",
    ),
    line("vllm.core_wait", "*Waiting for {count:d} core engine proc(s) to ", ENGINE, WAIT),
    line("vllm.core_wait", "*Waiting for {count:d} local, {remote:d} remote core engine proc(s) to ", ENGINE, WAIT),
    line("vllm.ready", "*Application startup complete.", "uvicorn", READY),
    line("vllm.ready", "*Uvicorn running on {address:w}", "uvicorn", READY),
    line("vllm.tps", "*Avg prompt throughput: {prompt_tps:f} tokens/s, Avg generation throughput: {tps:f} tokens/s", ENGINE, SERVING),
    line("vllm.worker_failed", "*WorkerProc failed to start", "vllm/v1/executor/multiproc_executor.py", "A worker died during start; its own exception stands above."),
    line(
        "vllm.worker_failed",
        "*WorkerProc initialization failed due to an exception in a background process",
        "vllm/v1/executor/multiproc_executor.py",
        "A worker died during start; its own exception stands above.",
    ),
    line("vllm.engine_dead", "*EngineCore encountered a fatal error", ENGINE, "The engine died; the reason stands above."),
    line("vllm.engine_dead", "*Engine core initialization failed. See root cause above", ENGINE, "The engine died during start; the reason stands above."),
    line(
        "vllm.rpc_timeout",
        "*RPC call to {!method:w} timed out",
        "vllm/v1/executor/multiproc_executor.py",
        "A worker did not finish a step in time: a stall in a kernel or a collective.",
    ),
    // SGLang
    line("sglang.dist_begin", "*Init torch distributed begin.", SGLANG, "This rank starts the rendezvous. One line a rank: count them."),
    line("sglang.dist_end", "*Init torch distributed ends.{text}", SGLANG, "The NCCL stage is over on this rank."),
    line("sglang.load_begin", "*Load weight begin. avail mem={text}", SGLANG, "The NCCL stage is over on this rank; weights are loaded."),
    line("sglang.load_end", "*Load weight end.{text}", SGLANG, LOADED),
    line("sglang.kv_cache", "*KV Cache is allocated.{text}", SGLANG, KV),
    line("sglang.graph_begin", "*Capture cuda graph begin.{text}", SGLANG, "Graphs are captured; collectives run while they are."),
    line("sglang.ready", "*The server is fired up and ready to roll!", SGLANG, READY),
    line("vllm.tps", "*gen throughput (token/s): {tps:f}", SGLANG, SERVING),
    line(
        "sglang.memory_unbalanced",
        "*The memory capacity is unbalanced. Some GPUs may be occupied by other processes",
        SGLANG,
        "The GPUs have different free memory. Found by an all-reduce, so collectives work.",
    ),
    line("sglang.scheduler_exception", "*Scheduler hit an exception: {text}", SGLANG, "A worker failed; the exception stands at the end of the stack that follows."),
    line("sglang.child_failed", "*Received sigquit from a child process", SGLANG, "A worker failed and takes the server down; its own exception stands above."),
    // Text Generation Inference
    line("tgi.shard_wait", "*Waiting for shard to be ready... rank={!rank:d}", TGI, WAIT),
    line("tgi.shard_wait", "*Waiting for shard {!rank:d} to be ready...", TGI, WAIT),
    line("tgi.shard_server", "*Server started at unix://{path:w}", "text_generation_server", "This shard's process is up."),
    line("tgi.shard_ready", "*Shard ready in {seconds} rank={!rank:d}", TGI, "The shard has warmed up, so collectives work."),
    line("tgi.webserver", "*Starting Webserver", TGI, "All shards are ready."),
    line("tgi.shard_error", "*Shard complete standard error output:", TGI, "A shard died; what it printed follows."),
    line("tgi.shard_failed", "*Shard {!rank:d} failed to start", TGI, "A shard died during start; its own error stands above."),
    // DeepSpeed, Megatron, Lightning, accelerate, Horovod, JAX
    line(
        "deepspeed.backend",
        "*Initializing TorchBackend in DeepSpeed with backend {!backend:w}",
        "deepspeed/comm/comm.py",
        "Before the first NCCL communicator: torch makes it at the first collective.",
    ),
    line("deepspeed.cdb", "*] cdb=None$", "deepspeed/comm/comm.py", "DeepSpeed is about to start its communication back end."),
    line(
        "deepspeed.mpi",
        "*Discovered MPI settings of world_rank={rank:d}, local_rank={local:d}, world_size={world:d}, master_addr={!master}, master_port={port:d}",
        "deepspeed/comm/comm.py",
        "Ranks and addresses as MPI gave them.",
    ),
    line("deepspeed.step", "*[Rank {rank:d}] step={step:d}, skipped={skipped:d},", "deepspeed/runtime/engine.py", "Training steps are done, so collectives work."),
    line("megatron.init_begin", "> initializing torch distributed ...", "megatron/initialize.py", "Megatron starts torch.distributed."),
    line(
        "megatron.parallel",
        "> initialized tensor model parallel with size {size:d}",
        "megatron/initialize.py",
        "The process groups exist in torch; NCCL makes each at its first collective.",
    ),
    line("megatron.iteration", "*iteration {iteration:d}/ {total:d} | consumed samples:", "megatron/training.py", "Training steps are done, so collectives work."),
    line("megatron.iteration", "*] (after {iteration:d} iterations) memory (MB) |", "megatron/training.py", "Training steps are done, so collectives work."),
    line(
        "lightning.member",
        "*Initializing distributed: GLOBAL_RANK: {rank:d}, MEMBER: {member:d}/{world:d}",
        "lightning/fabric",
        "This rank starts the rendezvous. One line a rank.",
    ),
    line("lightning.registered", "*All distributed processes registered. Starting with {world:d} processes", "lightning/fabric", "All ranks met at the store."),
    line("train.step", "*'loss': {loss:f}, 'grad_norm':", "transformers/trainer.py", "Training steps are done, so collectives work."),
    line("train.step", "*Epoch: [{epoch:d}]~[~{step:d}/{total:d}]~eta:", "torchvision/references", "Training steps are done, so collectives work."),
    line("train.step", "*Epoch[{epoch:d}] Batch [{batch}] Speed: {speed:f} samples/sec", "mxnet/callback.py", "Training steps are done, so collectives work."),
    line("train.step", "*'global_steps': {step:d}, 'eval_loss': {loss:f}", "", "Training steps are done, so collectives work."),
    line("train.step", "iter {step:d}: loss {loss:f}, time:", "litgpt", "Training steps are done, so collectives work."),
    line("train.step", "Train Epoch: {epoch:d} [{step:d}/{total:d} (", "pytorch/examples", "Training steps are done, so collectives work."),
    line("train.done", "*'train_runtime': {seconds:f}, 'train_samples_per_second':", "transformers/trainer.py", DONE),
    line("train.done", "*Training completed. Do not forget to share your model", "transformers/trainer.py", DONE),
    line("train.done", "*`Trainer.fit` stopped: `max_{what}` reached", "lightning/fit_loop", DONE),
    line("mlperf.progress", "*\"key\": \"block_stop\"", "mlperf_logging", "A block of training is done, so collectives work."),
    line("mlperf.progress", "*\"key\": \"epoch_stop\"", "mlperf_logging", "An epoch is done, so collectives work."),
    line("mlperf.progress", "*\"key\": \"eval_accuracy\"", "mlperf_logging", "An evaluation is done, so collectives work."),
    line("mlperf.run_stop", "*\"key\": \"run_stop\",{}\"status\": \"{!status}\"", "mlperf_logging", "The run came to its end, with this result."),
    line("mlperf.run_stop", "*\"key\": \"run_stop\"", "mlperf_logging", "The run came to its end."),
    line(
        "accelerate.rtx_refusal",
        "NotImplementedError: Using RTX {!series:d} series doesn't support faster communication broadband via P2P or IB",
        "accelerate/state.py",
        "accelerate refuses to start on these cards without NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1. Not a hang.",
    ),
    line(
        "accelerate.old_kernel",
        "*Detected kernel version {!version}, which is below the recommended minimum of",
        "accelerate/utils/other.py",
        "The Linux kernel is older than accelerate likes; known to hang.",
    ),
    line(
        "horovod.stall",
        "*One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks",
        "horovod/common/stall_inspector.cc",
        "Some ranks called a collective that others have not called.",
    ),
    line("horovod.shutdown", "*Horovod has been shut down", "horovod/common", "A rank left; the others' calls fail. A consequence."),
    line(
        "jax.stuck",
        "*This thread has been waiting for {!what} for {!seconds:d} seconds and may be stuck",
        "xla/service/rendezvous.cc",
        "Participants of a collective wait for one that has not come. It may still come: look for the line that gives up.",
    ),
    line("jax.unstuck", "*Thread is unstuck! Warning above was a false-positive", "xla/service/rendezvous.cc", "The participant that was waited for has come."),
    line(
        "jax.gave_up",
        "*Termination timeout for {!what} of {!seconds:d} seconds exceeded. Exiting to ensure a consistent program state",
        "xla/service/rendezvous.cc",
        "A participant of a collective did not come in time, and XLA ends the process.",
    ),
    line(
        "jax.nccl_error",
        "*NCCL operation {operation} failed: {!text}. Last NCCL warning(error) log entry (may be unrelated) '{last}'",
        "xla/service/gpu/nccl_utils.cc",
        "An NCCL call of XLA failed; the quoted entry is NCCL's last warning and may belong to something else.",
    ),
    line("sharp.unavailable", "*No Aggregation Manager (sharp_am) detected", "sharp", "In-network reduction is not available; NCCL goes on without it. Harmless."),
    // Programs that print a collective's result.
    line("app.collective_result", "~algo throughput: {bps:f} bps", "all_reduce_bench.py", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "~busbw: {busbw:f} Gbps", "all_reduce_bench.py", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "*all_reduce ok", "", "The program printed that a collective finished."),
    line("app.collective_result", "*all_reduce result={value}", "", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "*all_reduce result: {value}", "", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "*allreduce result: {value}", "", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "*broadcast result: {value}", "", "The program printed a collective's result, so it finished."),
    line("app.collective_result", "*all_reduce returned value={value}", "", "The program printed a collective's result, so it finished."),
];
