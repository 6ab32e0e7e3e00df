#!/usr/bin/env bash
# Feeds ncclog what no log should be and shows what it cost: exit code, wall time, peak memory.
#
# usage: benches/hostile.sh [--mb MB]      MB of each input (200; the endless line has 4 GB)
#
# Fails if a run ends by a signal or a panic, or needs more than 128 MB (256 MB for a stream of ever new processes, of
# which 16,384 are told apart). Needs bash and python3.
set -euo pipefail
cd "$(dirname "$0")/.."

mb=200
case ${1-} in
  '') ;;
  --mb) mb=$2 ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
cargo build --release --quiet
binary=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ncclog

python3 - "$binary" "$mb" <<'PYTHON'
import os, random, subprocess, sys, tempfile, time, zlib

binary, mb = sys.argv[1], int(sys.argv[2])
HEAD = b"node1:10:11 [0] NCCL INFO "

def noise(size):
    source = random.Random(7)
    while size > 0:
        piece = source.randbytes(min(size, 1 << 20))
        yield piece
        size -= len(piece)

def again(piece, size):
    piece = piece * max(1, (1 << 20) // len(piece))
    for _ in range(size // len(piece)):
        yield piece

def mixed(size):
    """Real starts of lines with noise behind them."""
    for piece in noise(size):
        yield b"\n".join(HEAD + piece[i:i + 100] for i in range(0, len(piece), 100)) + b"\n"

def zipped(pieces):
    packer = zlib.compressobj(1, wbits=31)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()

M = 1_000_000
CASES = {
    "random bytes": lambda: noise(mb * M),
    "random bytes behind headers": lambda: mixed(mb * M),
    "4 GB line": lambda: again(b"x", 4000 * M),
    "4 GB line behind a header": lambda: (p for part in ((HEAD,), again(b"x", 4000 * M)) for p in part),
    "NULs": lambda: again(b"\0", mb * M),
    "line ends": lambda: again(b"\n", mb * M),
    "carriage returns": lambda: again(b"50%\r", mb * M),
    "escape sequences": lambda: again(b"\x1b[31m", mb * M),
    "half UTF-8": lambda: again(b"\xe4\xb8", mb * M),
    "half UTF-16": lambda: (p for part in ((b"\xff\xfe",), again(b"\x00\xd8", mb * M)) for p in part),
    "open JSON": lambda: again(b'{"log":"', mb * M),
    "open brackets": lambda: again(b"[", mb * M),
    "glued headers": lambda: again(HEAD, mb * M),
    "one warning a line": lambda: (b"".join(b"node1:10:11 [0] a.cc:1 NCCL WARN w%d\n" % (n * 10000 + i) for i in range(10000)) for n in range(mb * M // 400_000)),
    "one process a line": lambda: (b"".join(b"node1:%d:11 [0] NCCL INFO Using network IB\n" % (n * 10000 + i) for i in range(10000)) for n in range(mb * M // 470_000)),
    "gzip bomb, --max-bytes 1G": lambda: zipped(again(b"\0", 20_000 * M)),
}

def run(name, pieces):
    command = [binary, "analyze", "--format", "json", "-"] + (["--max-bytes", "1G"] if "--max-bytes" in name else [])
    errors = tempfile.TemporaryFile()
    start = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
    fed = 0
    try:
        for piece in pieces:
            child.stdin.write(piece)
            fed += len(piece)
        child.stdin.close()
    except BrokenPipeError:
        pass
    _, status, usage = os.wait4(child.pid, 0)
    code, peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
    errors.seek(0)
    said = errors.read().decode(errors="replace")
    bad = code not in (0, 1, 2) or "panicked" in said or peak > (256 if name == "one process a line" else 128)
    print(f"{name:<30}{fed / M:>8.0f} MB{time.perf_counter() - start:>9.2f} s{usage.ru_utime + usage.ru_stime:>9.2f} s CPU{peak:>7.0f} MB peak   exit {code}{'   BAD' if bad else ''}", flush=True)
    return bad

sys.exit(any([run(name, make()) for name, make in CASES.items()]))
PYTHON
