#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Works from any folder; leaves nothing
# running. Ends with ctest's own closing lines.
set -euo pipefail
cd "$(dirname "$0")/.."

tool/install-packages.sh tests

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  if ! "$@" >"$log" 2>&1; then
    cat "$log"
    exit 1
  fi
}

echo "Building (preset dev)…"
quietly cmake --preset dev -DSTELA_CHECK_EXPORTS=ON
quietly cmake --build --preset dev
echo "Running the tests…"
ctest --preset dev --output-on-failure -j "$(nproc)" --progress
