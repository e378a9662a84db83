#!/usr/bin/env bash
# A build and a run of tests show how far they are, and hide nothing else. Usage: progress.sh
set -euo pipefail
. "$(dirname "$0")/../../tool/progress.sh"

expect() {
  [ "$1" = "$2" ] || { printf 'expected\n%s\nand not\n%s\n' "$2" "$1"; exit 1; }
}
without_times() { sed -E 's/^ *[0-9]+:[0-9]{2}  //'; }

expect "$(for i in {1..20}; do echo "[$i/20] Building"; done | show_progress ninja "building" | without_times | sed -n '1p;$p')" \
  "[2/20] building
[20/20] building"

expect "$({
  echo "[0/2] Re-checking globbed directories..."
  echo "[1/2] Building"
  echo "FAILED: a.o"
  echo
  echo "a.cpp:1: error: no"
  echo "ninja: no work to do."
} | show_progress ninja "building" | without_times)" "[1/2] building
FAILED: a.o

a.cpp:1: error: no"

expect "$({
  echo "      Start  1: Store.Opens"
  echo " 1/10 Test  #1: Store.Opens .....................   Passed    0.01 sec"
  echo " 2/10 Test  #2: Store.Closes ....................***Failed    0.01 sec"
  echo "[2/2] Linking a consumer"
  echo "3/4 Test  #3: Of.Another ....   Passed    0.01 sec"
  echo
  echo " 3/10 Test  #3: Store.Reads .....................   Passed    0.01 sec"
  echo "67% tests passed, 1 tests failed out of 3"
} | show_progress ctest "testing" | without_times)" "[1/10] testing
 2/10 Test  #2: Store.Closes ....................***Failed    0.01 sec
[2/2] Linking a consumer
3/4 Test  #3: Of.Another ....   Passed    0.01 sec

[3/10] testing
67% tests passed, 1 tests failed out of 3"

# What failed before it still ends the script.
if (set -o pipefail; false | show_progress ninja "building"); then
  echo "the failure is lost"
  exit 1
fi
