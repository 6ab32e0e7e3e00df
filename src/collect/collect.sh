#!/bin/sh
# Collects facts of this host for ncclog. It only reads; it needs no root and installs nothing.
#   sh collect.sh > node7.txt
#   ssh node7 sh < collect.sh > node7.txt
#   srun --ntasks-per-node=1 sh -c 'sh /shared/collect.sh > "/shared/facts.$(hostname).txt"'
#   kubectl exec -i POD -- sh < collect.sh > POD.txt
# NCCLOG_HOST is the name in the logs where it differs from this host's, NCCLOG_TIMEOUT the seconds for each command.

# Kills the running command with its group, or where there is no setsid at least itself.
end() {
  kill -s KILL -- "-$job" 2>/dev/null || kill -s KILL "$job" "$(cat "$tmp/pid")" 2>/dev/null
}

# What the command printed. Nothing of it may look like a line of ours.
output() {
  sed 's/^### / &/' "$out"
  if [ -n "$(tail -c 1 "$out")" ]; then
    echo
  fi
}

# Runs a command in a group of its own: timed CLOCK FOLDER PROGRAM [ARGUMENT]...
# shellcheck disable=SC2016
timed='
  clock=$1
  tmp=$2
  shift 2
  "$@" 2>&1 &
  echo "$!" >"$tmp/pid"
  wait "$!"
  echo "$?" >"$tmp/code"
  kill -s KILL "$clock"
'

# run SHOWN PROGRAM [ARGUMENT]... writes one section; true if the command succeeded.
run() {
  printf '### $ %s\n' "$1"
  shift
  if ! command -v "$1" >/dev/null 2>&1; then
    echo '### missing'
    return 1
  fi
  # A file for each: what cannot be killed may still write to its own.
  count=$((count + 1))
  out=$tmp/$count
  rm -f "$tmp/code" "$tmp/pid"
  # A process that hangs in the kernel cannot be waited for. So the clock is, and a command that ends stops the clock.
  sleep "$limit" >/dev/null 2>&1 &
  clock=$!
  $group sh -c "$timed" sh "$clock" "$tmp" "$@" </dev/null >"$out" 2>/dev/null &
  job=$!
  wait "$clock" 2>/dev/null
  over=
  if [ ! -s "$tmp/code" ]; then
    over=1
    end
  fi
  job=
  code=$(cat "$tmp/code" 2>/dev/null)
  cut=
  if [ "$(wc -c <"$out")" -gt "$most" ]; then
    cut=1
    dd if="$out" of="$tmp/cut" bs=65536 count="$((most / 65536))" 2>/dev/null
    mv -f "$tmp/cut" "$out"
  fi
  output
  rm -f "$out"
  if [ -n "$cut" ]; then
    echo "### cut after $most bytes"
  elif [ -n "$over" ]; then
    echo "### timed out after $limit s"
  else
    echo "### exit $code"
    return "$code"
  fi
  return 1
}

# A folder that only this user can read.
folder() {
  for place in "${TMPDIR:-/tmp}" /dev/shm /var/tmp .; do
    tmp=$(mktemp -d "$place/ncclog.XXXXXX" 2>/dev/null) && return
  done
  echo 'collect: no folder for temporary files can be made; set TMPDIR' >&2
  exit 2
}

stop() {
  if [ -n "$job" ]; then
    end
    kill -s KILL "$clock" 2>/dev/null
    wait "$clock" 2>/dev/null
    output
    echo '### interrupted'
  fi
  exit 2
}

main() {
  limit=${NCCLOG_TIMEOUT:-@timeout@}
  case $limit in
    '' | *[!0-9]* | 0)
      echo 'collect: NCCLOG_TIMEOUT is no number of seconds' >&2
      exit 2
      ;;
  esac
  most=@most@
  count=0
  job=
  LC_ALL=C
  PATH=${PATH:+$PATH:}@path@
  export LC_ALL PATH
  umask 077
  folder
  trap 'rm -rf "$tmp"' EXIT
  trap stop HUP INT TERM
  group=
  if command -v setsid >/dev/null 2>&1; then
    group=setsid
  fi
  root=no
  if [ "$(id -u)" = 0 ]; then
    root=yes
  fi
  printf '%s host=%s time=%s root=%s\n' '@magic@' "${NCCLOG_HOST:-$(uname -n)}" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$root"

@commands@
  echo 'collect: give the output to ncclog beside the logs: ncclog analyze rank*.log node*.txt' >&2
}

# Nothing runs before the whole script has arrived.
main
