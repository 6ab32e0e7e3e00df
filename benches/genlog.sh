#!/usr/bin/env bash
# Builds the generator of made-up logs by itself, which takes seconds (`cargo bench` would build all of ncclog a second
# time), and runs it.
#
# usage: benches/genlog.sh --out DIR [--mix coll|rccl|init|interleaved|small] [--files N] [--mb MB] …
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

target=$(cargo metadata --manifest-path "$here/../Cargo.toml" --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
mkdir -p "$target"
if [[ ! -x $target/genlog || -n $(find "$here/genlog.rs" "$here/corpus" -newer "$target/genlog") ]]; then
  rustc --edition 2024 -O -o "$target/genlog" "$here/genlog.rs"
fi
exec "$target/genlog" "$@"
