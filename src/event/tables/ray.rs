//! Rows of Ray.

use super::line;
use crate::event::shape::Shape;

const DIED: &str = "A worker process died under Ray. The reason is in that worker's own log; the survivors' errors follow from it.";
const OOM: &str = "Ray's memory monitor killed workers because the node ran short of host memory.";

/// The rows.
pub const SHAPES: &[Shape] = &[
    line("ray.started", "*Started a local Ray instance.", "ray/_private/worker.py", "Ray is up."),
    line("ray.started", "*Connected to Ray cluster.", "ray/_private/worker.py", "Ray is up."),
    line("ray.actor_died", "*ray.exceptions.ActorDiedError: {text}", "ray/exceptions.py", DIED),
    line("ray.actor_died", "*ray.exceptions.RayActorError: {text}", "ray/exceptions.py", DIED),
    line("ray.actor_died", "*worker process has died. Worker exit type: {!type:w} Worker exit detail: {text}", "ray/exceptions.py", DIED),
    line("ray.worker_died", "*A worker died or was killed while executing a task by an unexpected system error", "raylet", DIED),
    line("ray.worker_died", "*ray.exceptions.WorkerCrashedError: {text}", "ray/exceptions.py", DIED),
    line("ray.worker_killed", "*Workers (tasks / actors) killed due to memory pressure (OOM)", "raylet", OOM),
    line("ray.worker_killed", "*Task was killed due to the node running low on memory", "raylet", OOM),
    line("ray.worker_killed", "*ray.exceptions.OutOfMemoryError: {text}", "ray/exceptions.py", OOM),
    line("ray.node_died", "*The node with node id: {!node:w} and address: {!address:w} and node name: {} has been marked dead", "raylet", "A node left the Ray cluster."),
    line(
        "ray.placement_wait",
        "*Waiting for creating a placement group of specs for {seconds:d} seconds",
        "vllm/executor/ray_utils.py",
        "Ray has not enough free GPUs for the job yet.",
    ),
    line("ray.placement_wait", "*No available node types can fulfill resource request", "ray/autoscaler", "No node can give what the job asks for."),
];
