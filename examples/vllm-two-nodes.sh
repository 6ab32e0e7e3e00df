#!/usr/bin/env bash
# Serves a model with vLLM on two nodes (Ray), and stops it unless NCCL's start is good.
#
#   head node:   HEAD_IP=192.0.2.11 ./vllm-two-nodes.sh MODEL
#   other node:  HEAD_IP=192.0.2.11 ROLE=worker ./vllm-two-nodes.sh
#
# HEAD_IP is the head's address on the fabric, not on the management network.
set -euo pipefail

: "${HEAD_IP:?set HEAD_IP to the head address on the fabric}"
ROLE=${ROLE:-head}
LOGS=${LOGS:-$PWD/logs}
TIMEOUT=${TIMEOUT:-15m}
PARALLEL=${PARALLEL:-2}
mkdir -p "$LOGS"

# One file a process, written at once; vLLM's own lines prove that the first collective has finished.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH
export NCCL_DEBUG_FILE="$LOGS/nccl.%h.%p.log" PYTHONUNBUFFERED=1 VLLM_LOGGING_LEVEL=INFO

if [[ $ROLE == worker ]]; then
  exec ray start --address "$HEAD_IP:6379" --block
fi

ray start --head --node-ip-address "$HEAD_IP" --port 6379
trap 'ray stop' EXIT
vllm serve "${1:?which model?}" --tensor-parallel-size "$PARALLEL" --distributed-executor-backend ray >"$LOGS/vllm.log" 2>&1 &
server=$!

code=0
ncclog follow "$LOGS" --until collective --timeout "$TIMEOUT" --expect net=IB --expect nnodes=2 --output "$LOGS/start.txt" || code=$?
if ((code != 0)); then
  echo "the start is not good (ncclog: $code); the server is stopped, see $LOGS/start.txt" >&2
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  exit "$code"
fi
echo "the start is good; serving"
wait "$server"
