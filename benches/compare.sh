#!/usr/bin/env bash
# Compares ncclog with the plain tools that read the same bytes: wall time, CPU time, peak memory.
#
# usage: benches/compare.sh [--mb MB] [--files N] [--mix coll|rccl|init|interleaved|small] [--runs N] [--keep DIR]
#
# Generates the logs once, reads them once so that all tools find them in the page cache, then runs every tool in turn,
# several rounds, and prints medians. Needs bash and python3; without ripgrep its rows are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

size=() mix=coll runs=5 keep=
while (($#)); do
  case $1 in
    --mb | --files) size+=("$1" "$2") ;;
    --mix) mix=$2 ;;
    --runs) runs=$2 ;;
    --keep) keep=$2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done

if [[ -n $keep ]]; then
  logs=$keep
else
  logs=$(mktemp -d)
  trap 'rm -rf "$logs"' EXIT
fi
cargo build --release --quiet
benches/genlog.sh --out "$logs" --mix "$mix" "${size[@]}"
binary=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ncclog

# What a person would search for to find what ncclog finds.
patterns=$(mktemp)
trap 'rm -f "$patterns"; [[ -n $keep ]] || rm -rf "$logs"' EXIT
cat > "$patterns" <<'PATTERNS'
Using network (IB|Socket)
NET/IB : No device found
ibv_modify_qp failed
(Got completion from peer .*(error 12|status=12)|IBV_WC_RETRY_EXC_ERR)
Connection closed by remote peer
[Cc]onnect to .* (failed|returned)
no socket interface found
Mismatched NCCL version
Watchdog caught collective operation timeout
last completed NCCL work: -1
IO_PAGE_FAULT
HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION
an illegal memory access was encountered
out of memory
Cannot allocate memory
No space left on device
Duplicate GPU detected
Too many open files
P2P is disabled between
NVRM: Xid
PATTERNS

python3 - "$binary" "$logs" "$patterns" "$runs" <<'PYTHON'
import atexit, os, shutil, statistics, subprocess, sys, time
from pathlib import Path

binary, logs, patterns, runs = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
files = sorted(str(p) for p in logs.iterdir())
size = sum(os.path.getsize(f) for f in files)
tools = {"ncclog": [binary, "analyze", "--format", "json", *files]}
if len(files) > 1000:
    # What opening so many files costs: the same text in eight.
    joined = Path(patterns).parent / f"{logs.name}.joined"
    joined.mkdir()
    atexit.register(shutil.rmtree, joined)
    for i in range(8):
        with open(joined / f"{i}.log", "wb") as out:
            for file in files[i::8]:
                out.write(Path(file).read_bytes())
    tools["ncclog, in 8 files"] = [binary, "analyze", "--format", "json", *map(str, sorted(joined.iterdir()))]
if rg := shutil.which("rg"):
    tools["rg -c NCCL"] = [rg, "-c", "NCCL", *files]
    tools["rg -c, 20 patterns"] = [rg, "-c", "-f", patterns, *files]
else:
    print("ripgrep (rg) is not installed: compared with wc and cat only", file=sys.stderr)
tools["wc -l"] = ["wc", "-l", *files]
tools["cat"] = ["cat", *files]

def run(command):
    """Wall seconds, CPU seconds and peak resident MB of one run."""
    start = time.perf_counter()
    # A pipe, since cat and others recognise /dev/null and do nothing.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    while os.read(child.stdout.fileno(), 1 << 20):
        pass
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    # rg leaves with 1 where nothing matched, ncclog where it found something.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{command[0]} failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

for file in files:
    with open(file, "rb") as f:
        while f.read(1 << 20):
            pass
results = {name: [] for name in tools}
for _ in range(runs):
    for name, command in tools.items():
        results[name].append(run(command))
median = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in results.items()}

ours = median["ncclog"][0]
print(f"{len(files)} files, {size / 1e6:.0f} MB, {os.cpu_count()} cores, median of {runs} runs")
print(f"{'tool':<20}{'wall s':>9}{'MB/s':>9}{'CPU s':>9}{'peak MB':>9}{'wall, ncclog = 1':>18}")
for name, (wall, cpu, peak) in median.items():
    print(f"{name:<20}{wall:>9.3f}{size / 1e6 / wall:>9.0f}{cpu:>9.3f}{peak:>9.0f}{wall / ours:>18.2f}")
PYTHON
