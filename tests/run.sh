#!/usr/bin/env bash
# Installs what is missing, builds with GCC and clang, and runs every test; codec and store under
# sanitizers as well.
# Works from any folder; leaves nothing running. Says how far it is, with the minutes gone by; ctest's
# own closing lines come last.
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

# Many tests wait for a disk, a broker or a process more than they compute.
jobs=$((2 * $(nproc)))
# The packages' consumers are projects of their own; they compile through the cache, too.
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

# sanitized PRESET LABEL…: the tests with these labels, and nothing else, in this preset.
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
