#!/usr/bin/env bash
# Compares compressed input with its decoder: one file against the tool that unpacks it, and two files with one, since
# files are decoded side by side.
#
# usage: benches/compressed.sh [--mb MB] [--runs N]
#
# --mb: size of a file before it is packed (200). Needs bash and python3; formats whose tool is missing are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

mb=200 runs=3
while (($#)); do
  case $1 in
    --mb) mb=$2 ;;
    --runs) runs=$2 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
cargo build --release --quiet
binary=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ncclog
benches/genlog.sh --out "$logs" --mix coll --files 2 --mb "$mb" >/dev/null

python3 - "$binary" "$logs" "$runs" <<'PYTHON'
import os, shutil, statistics, subprocess, sys, time
from pathlib import Path

binary, logs, runs = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
plain = sorted(logs.iterdir())
size = plain[0].stat().st_size

def run(command):
    """Wall and CPU seconds of one run."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime

def median(command):
    run(command)
    return [statistics.median(c) for c in zip(*(run(command) for _ in range(runs)))]

def ours(files):
    return [binary, "analyze", "--format", "json", *map(str, files)]

print(f"{size / 1e6:.0f} MB a file before it is packed, median of {runs} runs; seconds of wall (CPU)")
print(f"{'format':<8}{'packed MB':>10}{'decoder':>15}{'ncclog':>15}{'ratio':>7}{'two files':>15}")
wall, cpu = median(ours(plain[:1]))
both = median(ours(plain))
print(f"{'plain':<8}{size / 1e6:>10.0f}{'':>15}{f'{wall:.2f} ({cpu:.2f})':>15}{'':>7}{f'{both[0]:.2f} ({both[1]:.2f})':>15}")
for tool, level in (("gzip", "-6"), ("zstd", "-3"), ("xz", "-2"), ("bzip2", "-9"), ("lz4", "-1")):
    if not shutil.which(tool):
        print(f"{tool:<8} is not installed", file=sys.stderr)
        continue
    packed = []
    for file in plain:
        packed.append(file.with_suffix(f".{tool}"))
        with open(packed[-1], "wb") as out:
            subprocess.run([tool, level, "-c", str(file)], stdout=out, check=True)
    decoder = median([tool, "-dc", str(packed[0])])
    one, two = median(ours(packed[:1])), median(ours(packed))
    cells = [f"{wall:.2f} ({cpu:.2f})" for wall, cpu in (decoder, one, two)]
    print(f"{tool:<8}{packed[0].stat().st_size / 1e6:>10.1f}{cells[0]:>15}{cells[1]:>15}{one[0] / decoder[0]:>7.2f}{cells[2]:>15}", flush=True)
    for file in packed:
        file.unlink()
PYTHON
