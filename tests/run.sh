#!/usr/bin/env bash
# Installs missing packages, builds with GCC and clang, and runs every test; codec and store tests
# also run under sanitizers. Works from any folder; leaves nothing running. Shows its progress with
# the minutes since its start; ctest's own summary comes last.
#   tests/run.sh [--no-sanitizers]
set -euo pipefail
cd "$(dirname "$0")/.."
. tool/progress.sh
. tool/processes.sh

sanitizers=yes
case $* in
  "") ;;
  --no-sanitizers) sanitizers=no ;;
  *)
    echo "usage: tests/run.sh [--no-sanitizers]" >&2
    exit 2
    ;;
esac

tool/install-packages.sh tests

# Many tests spend more time waiting for a disk, a broker or a process than computing.
jobs=$((2 * $(nproc)))
# The packages' consumers are separate projects, which also compile through the cache.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# build PRESET [TARGET…]
build() {
  local preset=$1
  shift
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log"
    exit 1
  fi
  cmake --build --preset "$preset" ${1:+--target "$@"} 2>&1 | show_progress ninja "building, preset $preset"
}

# sanitized PRESET LABEL…: in this preset, builds and runs only the tests with these labels.
sanitized() {
  local preset=$1
  shift
  local targets=() labels
  for label in "$@"; do
    [[ $label == fuzz ]] && targets+=(fuzzers) || targets+=("stela_${label}_tests")
  done
  labels=$(IFS='|' && echo "^($*)\$")
  stage "Sanitizers (preset $preset): $*"
  build "$preset" "${targets[@]}"
  ctest --preset "$preset" -L "$labels" --no-tests=error --output-on-failure -j "$jobs" >"$log" 2>&1 ||
    { cat "$log"; exit 1; }
}

tests() {
  ctest --preset ci --output-on-failure -j "$jobs" | show_progress ctest "running the tests"
}

stage "Building (preset ci)"
run build ci
stage "Building the library and the samples with clang"
run build clang
if [[ $sanitizers == yes ]]; then
  run sanitized asan codec framework contract eventstore threads fuzz
  run sanitized tsan contract threads waits
fi
stage "Running the tests"
run tests
