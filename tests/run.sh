#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test; codec and store under sanitizers as well.
# Works from any folder; leaves nothing running. Each stage is named with the minutes gone by; ctest's
# own closing lines come last.
#   tests/run.sh [--no-sanitizers]
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizers=yes
case ${1:-} in
  "") ;;
  --no-sanitizers) sanitizers=no ;;
  *)
    echo "usage: tests/run.sh [--no-sanitizers]" >&2
    exit 2
    ;;
esac

tool/install-packages.sh tests

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  if ! "$@" >"$log" 2>&1; then
    cat "$log"
    exit 1
  fi
}

# stage TEXT: what follows takes so long.
stage() {
  echo "$(printf '%3d:%02d' $((SECONDS / 60)) $((SECONDS % 60)))  $1"
}

# sanitized preset label…: the tests with these labels, and nothing else, in this preset.
sanitized() {
  local preset=$1
  shift
  local targets=() labels
  for label in "$@"; do
    [[ $label == fuzz ]] && targets+=(fuzzers) || targets+=("stela_${label}_tests")
  done
  labels=$(IFS='|' && echo "^($*)\$")
  stage "Building and running with sanitizers (preset $preset): $*"
  quietly cmake --preset "$preset"
  quietly cmake --build --preset "$preset" --target "${targets[@]}"
  quietly ctest --preset "$preset" -L "$labels" --no-tests=error --output-on-failure -j "$jobs"
}

# Many tests wait for a disk, a broker or a process more than they compute.
jobs=$((2 * $(nproc)))
# The packages' consumers are projects of their own; they compile through the cache, too.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi

stage "Building (preset dev)"
quietly cmake --preset dev -DSTELA_CHECK_EXPORTS=ON
quietly cmake --build --preset dev
if [[ $sanitizers == yes ]]; then
  sanitized asan codec framework contract eventstore threads fuzz
  sanitized tsan contract threads
fi
stage "Running the tests"
ctest --preset dev --output-on-failure -j "$jobs" --progress
