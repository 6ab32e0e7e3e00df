#!/usr/bin/env bash
# Counts the instructions of whole runs on fixed made-up logs and compares them with the recorded ones: timing noise of
# a busy machine does not touch them.
#
# usage: benches/instructions.sh [--record]
#
# Fails if a count grew by more than 3 %. --record writes the counts to benches/instructions.txt instead. They hold for
# the toolchain and the processor named there. Needs valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."

record=
case ${1-} in
  '') ;;
  --record) record=1 ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
command -v valgrind >/dev/null || { echo "instructions: valgrind is missing; install it" >&2; exit 2; }

cargo build --release --quiet
binary=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/ncclog
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
counts=benches/instructions.txt
status=0

count() { # name, genlog arguments
  local name=$1
  shift
  benches/genlog.sh --out "$work/$name" "$@" >/dev/null
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" analyze --threads 1 --fail-on never --format json "$work/$name" 2>"$work/$name.err" >/dev/null
  sed -n 's/.*Collected : //p' "$work/$name.err"
}

for row in "coll --mix coll --files 2 --mb 10" "rccl --mix rccl --files 2 --mb 10" "init --mix init --files 2 --mb 10" "interleaved --mix interleaved --files 8 --mb 2.5" "small --mix small --files 100 --mb 0.2"; do
  read -r name arguments <<<"$row"
  # shellcheck disable=SC2086 # the arguments are words
  now=$(count "$name" $arguments)
  if [[ -n $record ]]; then
    echo "$name $now" >>"$work/new"
    echo "$name $now"
    continue
  fi
  was=$(sed -n "s/^$name //p" "$counts")
  [[ -n $was ]] || { echo "$name is not in $counts; record it" >&2; exit 2; }
  awk -v name="$name" -v was="$was" -v now="$now" 'BEGIN { printf "%-12s %13d instructions, recorded %13d: %+.1f %%\n", name, now, was, (now - was) * 100 / was; exit now > was * 1.03 }' || status=1
done

if [[ -n $record ]]; then
  { echo "# 20 MB of each mix, one thread, whole program. $(rustc --version)"; cat "$work/new"; } >"$counts"
fi
exit $status
