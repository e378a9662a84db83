#!/usr/bin/env bash
# The long forms of the simulation: [SEEDS] (100000) on the model store, some of them on SQLite, in calm
# worlds or with 256 partitions, every way to place three faults in a small world, and the mutants.
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=${1:-100000}

echo "Building (preset release)…"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset release -DSTELA_BUILD_TESTS=ON &&
  cmake --build --preset release --target stela_sim; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  exit 1
fi
sim=build/release/bin/stela_sim

$sim --seeds "$seeds"
$sim --seeds $((seeds / 50)) --start $((seeds + 1)) --sqlite
$sim --seeds $((seeds / 50)) --calm
$sim --seeds $((seeds / 500)) --partitions 256
$sim --seeds $((seeds / 500)) --calm --partitions 256
$sim --exhaustive 3
$sim --decisions --seeds $((seeds / 5))
$sim --timers --seeds $((seeds / 20))
$sim --consumers --seeds $((seeds / 20))
$sim --mutants
$sim --decisions --mutants
$sim --timers --mutants
$sim --consumers --mutants
