//! Rows of launchers and schedulers: torchrun, srun, mpirun, DeepSpeed, Kubernetes. They say who ended how, rarely why.

use super::line;
use crate::event::shape::Shape;

const RUN: &str = "torch/distributed/elastic/multiprocessing/api.py";
const SLURM: &str = "slurm";
const MPI: &str = "mpirun";
const EXIT: &str = "A rank's process ended with this code; a negative code or one above 128 is a signal. The first one that failed is worth a look, the others follow it.";
const LIMIT: &str = "The scheduler ended the job at its time limit. Either the limit was too short, or the job stood still until then.";
const OOM: &str = "The kernel's out-of-memory killer ended a process of the job: host memory, not GPU memory.";
const STOP: &str = "The launcher stops the other processes after one failed. A consequence.";
const SIGNAL: &str = "A rank's process was ended by this signal.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    // torchrun: the failure block comes in lines of `key : value`.
    line("launcher.first_failure", "*failed (exitcode: {!exitcode:d}) local_rank: {!local:d} (pid: {pid:d}) of binary:", RUN, EXIT),
    line("launcher.child_failed", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", RUN, "torchrun ends because a child failed. The block below names it."),
    line(
        "launcher.root_cause",
        "Root Cause (first observed failure):",
        RUN,
        "The block of the failure that torchrun saw first. Seen first by the launcher does not mean that it is the cause.",
    ),
    line("launcher.block_host", "~host~: {!host:w}$", RUN, "Node of a failed rank."),
    line("launcher.block_rank", "~rank~: {!rank:d} (local_rank: {local:d})", RUN, "A failed rank."),
    line("app.exit", "~exitcode~: {!code:d} (pid: {!pid:d})", RUN, EXIT),
    line("app.exit_signal", "~traceback~: Signal {!signal:d} ({name}) received by PID {pid:d}", RUN, SIGNAL),
    line("launcher.closing", "*Sending process {!pid:d} closing signal {signal:w}", RUN, STOP),
    line("launcher.closing", "*Unable to shutdown process {!pid:d} via {signal}, forcefully exiting via {:w}", RUN, STOP),
    line("launcher.sigterm", "Main process received SIGTERM, exiting", "deepspeed/launcher/launch.py", STOP),
    line("launcher.sigterm", "*Received SIGTERM: {signal:d}$", "lightning", STOP),
    line("launcher.sigterm", "*Received {signal:d} death signal, shutting down workers", RUN, STOP),
    line("launcher.kill_subprocess", "*Killing subprocess {pid:d}", "deepspeed/launcher/launch.py", STOP),
    line("app.exit", "*exits with return code = {!code:d}", "deepspeed/launcher/launch.py", EXIT),
    line("launcher.rendezvous", "*RendezvousTimeoutError", "torch/distributed/elastic/rendezvous", "Not enough nodes joined the rendezvous in time."),
    line("launcher.rendezvous", "*RendezvousConnectionError: {text}", "torch/distributed/elastic/rendezvous", "The rendezvous end point cannot be reached or is gone."),
    // srun and slurmstepd.
    line("app.exit", "*srun: error: {!host}: task {!rank:d}: Exited with exit code {!code:d}", SLURM, EXIT),
    line("app.exit", "*srun: error: {!host}: tasks {!ranks}: Exited with exit code {!code:d}", SLURM, EXIT),
    line("launch.terminated", "*srun: error: {!host}: task {!rank:d}: Terminated", SLURM, STOP),
    line("launch.terminated", "*srun: error: {!host}: tasks {!ranks}: Terminated", SLURM, STOP),
    line("app.killed", "*srun: error: {!host}: task {!rank:d}: Killed", SLURM, SIGNAL),
    line("app.killed", "*srun: error: {!host}: tasks {!ranks}: Killed", SLURM, SIGNAL),
    line("app.segfault", "*srun: error: {!host}: task {!rank:d}: Segmentation fault", SLURM, SIGNAL),
    line("app.segfault", "*srun: error: {!host}: tasks {!ranks}: Segmentation fault", SLURM, SIGNAL),
    line("app.bus_error", "*srun: error: {!host}: task {!rank:d}: Bus error", SLURM, SIGNAL),
    line("app.abort", "*srun: error: {!host}: task {!rank:d}: Aborted", SLURM, SIGNAL),
    line("app.abort", "*srun: error: {!host}: tasks {!ranks}: Aborted", SLURM, SIGNAL),
    line("app.oom_killer", "*srun: error: {!host}: task {!rank:d}: Out Of Memory", SLURM, OOM),
    line("app.oom_killer", "*srun: error: {!host}: tasks {!ranks}: Out Of Memory", SLURM, OOM),
    line("app.oom_killer", "*slurmstepd: error: Detected {!count:d} oom{}kill event", SLURM, OOM),
    line("launch.time_limit", "*slurmstepd: error: *** {what:w} {!job:w} ON {host:w} CANCELLED AT {at:w} DUE TO TIME LIMIT ***", SLURM, LIMIT),
    line("launch.node_failure", "*slurmstepd: error: *** {what:w} {!job:w} ON {host:w} CANCELLED AT {at:w} DUE TO NODE FAILURE", SLURM, "A node of the job failed."),
    line("launch.node_failure", "*srun: error: Node failure on {!host:w}", SLURM, "A node of the job failed."),
    line("launch.preempted", "*slurmstepd: error: *** {what:w} {!job:w} ON {host:w} CANCELLED AT {at:w} DUE TO PREEMPTION", SLURM, "Another job took the nodes."),
    line(
        "launch.cancelled",
        "*slurmstepd: error: *** {what:w} {!job:w} ON {host:w} CANCELLED AT {at:w} ***",
        SLURM,
        "The step was cancelled: by a user, or by srun after one task failed.",
    ),
    line("launch.step_aborted", "*srun: Job step aborted: Waiting up to {seconds:d} seconds for job step to finish", SLURM, STOP),
    line("launch.step_aborted", "*srun: Force Terminated {!job:w}", SLURM, STOP),
    line("launch.step_aborted", "*srun: Terminating StepId={!job:w}", SLURM, STOP),
    // mpirun.
    line("app.killed", "*process rank {!rank:d} with PID {pid:d} on node {!host:w} exited on signal {!signal:d}", MPI, SIGNAL),
    line("app.exit", "*MPI_ABORT was invoked on rank {!rank:d} in communicator", MPI, "A rank called MPI_Abort. It ends all others."),
    line("app.exit", "*with errorcode {!code:d}.$", MPI, EXIT),
    line("app.killed", "=~RANK {!rank:d} PID {pid:d} RUNNING AT {!host:w}", "hydra", SIGNAL),
    line("app.killed", "=~KILLED BY SIGNAL: {!signal:d} ({name})", "hydra", SIGNAL),
    line("app.exit", "~Exit code:~{!code:d}$", MPI, EXIT),
    line("launch.mpi_exit", "*Primary job terminated normally, but {count:d} process returned", MPI, STOP),
    line("launch.mpi_exit", "*BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "hydra", STOP),
    line("launch.mpi_exit", "*mpirun detected that one or more processes exited with non-zero status", MPI, STOP),
    line("launch.daemon_lost", "*has lost communication with a remote daemon", MPI, "mpirun lost a node: it crashed, or its connection broke."),
    line("launch.ssh_failed", "ssh: connect to host {!host:w} port {port:d}: {!text}", "ssh", "The launcher cannot reach this node."),
    // Containers.
    line("app.exit", "command terminated with exit code {!code:d}", "kubectl", EXIT),
    line("app.oom_killer", "~Reason:~OOMKilled$", "kubectl", OOM),
    line("app.oom_killer", "*\"reason\":\"OOMKilled\"", "kubectl", OOM),
    line("app.exit", "*Worker {name:w} pid {pid:d} died, exit code: {!code:d}", "vllm/executor/multiproc_worker_utils.py", EXIT),
];
