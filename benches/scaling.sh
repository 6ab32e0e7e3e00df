#!/usr/bin/env bash
# Shows that time grows with the input in a straight line, memory not at all, and that a second core pays.
#
# usage: benches/scaling.sh [--mb MB] [--pipe-gb GB]
#
# --mb: size of the largest file (1000); --pipe-gb: what is sent through a pipe (20). Needs bash and python3.
set -euo pipefail
cd "$(dirname "$0")/.."

mb=1000 pipe=20
while (($#)); do
  case $1 in
    --mb) mb=$2 ;;
    --pipe-gb) pipe=$2 ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
cargo build --release --quiet
binary=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ncclog
for part in 8 4 2 1; do
  benches/genlog.sh --out "$logs/$part" --mix coll --files 2 --mb "$((mb / 2 / part))" >/dev/null
done

python3 - "$binary" "$logs" "$pipe" <<'PYTHON'
import os, statistics, subprocess, sys, time
from pathlib import Path

binary, logs, pipe_gb = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])

def ended(child, start):
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1), "ncclog failed"
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

def run(files, threads):
    start = time.perf_counter()
    return ended(subprocess.Popen([binary, "analyze", "--format", "json", "--threads", str(threads), *files], stdout=subprocess.DEVNULL), start)

print(f"{'input':<24}{'threads':>8}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'ns/byte':>9}")
for part in (8, 4, 2, 1):
    files = sorted(str(p) for p in (logs / str(part)).iterdir())
    size = sum(os.path.getsize(f) for f in files)
    for threads in (1, 2):
        run(files, threads)
        wall, cpu, peak = (statistics.median(c) for c in zip(*(run(files, threads) for _ in range(5))))
        print(f"{size / 1e6:>7.0f} MB, 2 files      {threads:>8}{wall:>9.3f}{cpu:>9.3f}{peak:>9.0f}{wall * 1e9 / size:>9.3f}", flush=True)

# The same file over and over: what matters is that the stream does not end. In small pieces: what this script holds
# counts as the peak of its children, too.
def pieces():
    while True:
        with open(next((logs / "8").iterdir()), "rb") as f:
            while piece := f.read(1 << 18):
                yield piece

start, sent = time.perf_counter(), 0
child = subprocess.Popen([binary, "analyze", "--format", "json", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
for piece in pieces():
    child.stdin.write(piece)
    sent += len(piece)
    if sent >= pipe_gb * 1e9:
        break
child.stdin.close()
wall, cpu, peak = ended(child, start)
print(f"{sent / 1e6:>7.0f} MB, a pipe       {'2':>8}{wall:>9.3f}{cpu:>9.3f}{peak:>9.0f}{wall * 1e9 / sent:>9.3f}")
PYTHON
