#!/usr/bin/env bash
# Installs what is missing, builds the benchmark program and runs it: a table in Markdown on stdout,
# JSON lines in the file that it names at the end. Works from any folder.
#
# run.sh [--quick] [--figure PATTERN]… [--speed] [--rounds N] [--disk DIR] [--json FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."

tool/install-packages.sh tests

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Building the benchmarks (preset release)…" >&2
if ! { cmake --preset release -DSTELA_BUILD_TESTS=ON -DSTELA_BUILD_BENCHMARKS=ON &&
       cmake --build --preset release --target stela_benchmarks; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  exit 1
fi
rm -f "$log"
exec build/release/bin/stela_benchmarks --disk build/release --json build/release/benchmarks.jsonl "$@"
