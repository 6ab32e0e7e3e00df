#!/usr/bin/env python3
"""Digest the NCCL logs of every node of a Ray cluster where they lie, and merge the digests.

    python ray_digest.py --logs '/tmp/nccl.*.log' --output job.digest
    ncclog analyze job.digest

The pattern is expanded on each node, variables of its environment included. Needs `ncclog` on every node
(`pip install ncclog`); only digests travel, a few kilobytes a rank.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

# Digests that one task merges; what it gives back is merged again.
FAN_IN = 16


@ray.remote(num_cpus=0)
def digest(pattern, name, ncclog):
    """The digest of this node's logs, or None if it has none."""
    logs = sorted(glob.glob(os.path.expandvars(os.path.expanduser(pattern))))
    if not logs:
        return None
    done = subprocess.run([ncclog, "digest", "--no-config", *logs, "--output", "-"], capture_output=True, check=False)
    # 2: a file could not be read; what the others say is in the digest.
    if not done.stdout:
        raise RuntimeError(f"{name}: {done.stderr.decode(errors='replace').strip()}")
    return name, done.stdout


@ray.remote(num_cpus=0)
def merge(ncclog, level, *digests):
    """One digest of several."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, content in filter(None, digests):
            # Streams that share a path are told apart by the digest's name.
            files.append(os.path.join(folder, f"{name}.digest"))
            with open(files[-1], "wb") as file:
                file.write(content)
        if not files:
            return None
        merged = subprocess.run([ncclog, "merge", *files, "--output", "-"], stdout=subprocess.PIPE, check=True)
        return f"merged{level}-{os.path.basename(files[0])[:-7]}", merged.stdout


def collect(pattern, ncclog="ncclog"):
    """The digest of all nodes of the cluster that this process is connected to, or None."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    parts = []
    for node in nodes:
        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        name = f"{node['NodeManagerHostname']}-{node['NodeID'][:6]}"
        parts.append(digest.options(scheduling_strategy=here).remote(pattern, name, ncclog))
    level = 0
    while True:
        level += 1
        parts = [merge.remote(ncclog, level, *parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            merged = ray.get(parts[0])
            return merged and merged[1]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", required=True, help="pattern of the logs on each node, in quotes")
    parser.add_argument("--output", required=True, help="where the merged digest is written")
    parser.add_argument("--address", default="auto", help="the cluster; auto is the one that runs here")
    parser.add_argument("--ncclog", default="ncclog", help="the program on the nodes")
    options = parser.parse_args(arguments)
    if not ray.is_initialized():
        ray.init(address=options.address)
    content = collect(options.logs, options.ncclog)
    if content is None:
        print(f"no node has a file that matches {options.logs}", file=sys.stderr)
        return 2
    with open(options.output, "wb") as file:
        file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
