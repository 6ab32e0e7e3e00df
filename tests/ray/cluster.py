"""Starts a Ray cluster of several nodes on this machine, each with logs of its own, and runs examples/ray_digest.py on it.

    python cluster.py NCCLOG OUTPUT FOLDER...
"""

import os
import sys

import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
import ray_digest  # noqa: E402

ncclog, output, *folders = sys.argv[1:]
cluster = Cluster()
try:
    for folder in folders:
        # The environment of a node is that of its workers: each sees its own logs only.
        cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, env_vars={"NODE_LOGS": folder})
    ray.init(address=cluster.address, log_to_driver=False)
    code = ray_digest.main(["--logs", "$NODE_LOGS/*.log", "--output", output, "--ncclog", ncclog])
finally:
    ray.shutdown()
    cluster.shutdown()
sys.exit(code)
