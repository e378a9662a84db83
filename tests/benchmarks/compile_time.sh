#!/usr/bin/env bash
# How long the compiler works on files of a user. First what the headers cost beside those that nearly
# every file includes; then files with and without STELA_EXTERN_… in their domain. User time of g++ in
# seconds, the median; what is compared takes turns.
# Usage: compile_time.sh BUILD-FOLDER [ROUNDS]
set -euo pipefail
build=$(realpath "${1:?a build folder}")
rounds=${2:-5}
cd "$(dirname "$0")/../.."

flags=(-std=c++20 -DCEREAL_THREAD_SAFE=1)
for module in framework eventstore outbox outbox/nats projections tool; do
  flags+=("-I$PWD/$module/include" "-I$build/$module/include")
done
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/with"
cp -r samples/orders "$copy/with/orders"
cp -r tests/framework "$copy/with/framework"
cp -r "$copy/with" "$copy/without"
find "$copy/without" -name '*.hpp' -exec sed -i '/^STELA_EXTERN_/d' {} +

# seconds ARGUMENT…: of g++.
seconds() {
  local TIMEFORMAT=%U
  { time g++ "${flags[@]}" "$@" -o "$copy/object.o"; } 2>&1
}
in_copy() { seconds "-I$copy/$1" "-I$copy/$1/orders" "$2" -c "$copy/$1/$3"; }
median() { sort -n | sed -n "$((rounds / 2 + 1))p"; }

printf '%-40s %8s %8s\n' file -O0 -O2
headers=tests/headers/usual_includes.cpp
cost() {
  local what=$1 level
  shift
  for level in O0 O2; do seconds -$level -c "$@" >>"$copy/$what.$level.txt"; done
}
rows=("the usual includes" "framework" "and eventstore" "and projections" "twenty events")
for ((i = 0; i < rounds; i++)); do
  cost "${rows[0]}" $headers
  cost "${rows[1]}" $headers -include stela/framework.hpp
  cost "${rows[2]}" $headers -include stela/framework.hpp -include stela/eventstore.hpp
  cost "${rows[3]}" $headers -include stela/framework.hpp -include stela/eventstore.hpp \
    -include stela/projections.hpp
  cost "${rows[4]}" tests/headers/twenty_events.cpp
done
for row in "${rows[@]}"; do
  printf '%-40s %8s %8s\n' "$row" "$(median <"$copy/$row.O0.txt")" "$(median <"$copy/$row.O2.txt")"
done
rm "$copy"/*.txt

echo
printf '%-40s %5s  %8s %8s\n' file "" without with
for file in framework/extern_templates/branch.cpp orders/{shop,commands,show,work}.cpp \
  framework/extern_templates/bank.cpp orders/domain.cpp; do
  for level in -O0 -O2; do
    for ((i = 0; i < rounds; i++)); do
      in_copy without "$level" "$file" >>"$copy/without.txt"
      in_copy with "$level" "$file" >>"$copy/with.txt"
    done
    printf '%-40s %5s  %8s %8s\n' "$file" "$level" "$(median <"$copy/without.txt")" \
      "$(median <"$copy/with.txt")"
    rm "$copy"/*.txt
  done
done
