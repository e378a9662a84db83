#!/usr/bin/env bash
# Fuzzes each decoder with libFuzzer, address and undefined-behaviour sanitizers. Needs clang.
#   tests/fuzz/run.sh [--seconds N] [name…]     N for each, 60 unless given
# What makes new paths is kept under build/fuzz/corpus, what fails under build/fuzz/failures.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60
names=()
while (($#)); do
  case $1 in
    --seconds)
      seconds=${2:?"--seconds needs a number"}
      shift 2
      ;;
    -*)
      echo "usage: tests/fuzz/run.sh [--seconds N] [name…]" >&2
      exit 2
      ;;
    *)
      names+=("$1")
      shift
      ;;
  esac
done
((${#names[@]})) || names=(json binary names sealed metadata import)

if ! command -v clang++ >/dev/null; then
  echo "tests/fuzz/run.sh needs clang++: apt-get install clang" >&2
  exit 1
fi
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers
mkdir -p build/fuzz/failures
for name in "${names[@]}"; do
  echo "== $name, $seconds s"
  mkdir -p "build/fuzz/corpus/$name"
  "build/fuzz/bin/stela_${name}_fuzzer" -max_total_time="$seconds" -max_len=16384 \
    -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/failures/$name-" \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
