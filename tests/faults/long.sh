#!/usr/bin/env bash
# The long forms of the fault tests, on real files, and of the fuzzers if there is clang: about two
# hours. CI has the short ones.
#   tests/faults/long.sh [--kills N] [--minutes N] [--fuzz-seconds N]
# Every test prints its seed; STELA_FAULTS_SEED=… runs it again.
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=5000
minutes=30
fuzz_seconds=600
while (($#)); do
  case $1 in
    --kills) kills=$2 ;;
    --minutes) minutes=$2 ;;
    --fuzz-seconds) fuzz_seconds=$2 ;;
    *)
      echo "usage: tests/faults/long.sh [--kills N] [--minutes N] [--fuzz-seconds N]" >&2
      exit 2
      ;;
  esac
  shift 2
done

cmake --preset dev >/dev/null
cmake --build --preset dev --target stela_faults_tests
STELA_FAULTS_KILLS=$kills STELA_FAULTS_SECONDS=$((minutes * 60)) \
  build/dev/bin/stela_faults_tests --gtest_filter='KilledWriter.*:Checkpoints.*:Contention.*'
if command -v clang++ >/dev/null; then
  tests/fuzz/run.sh --seconds "$fuzz_seconds"
fi
