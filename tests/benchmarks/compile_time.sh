#!/usr/bin/env bash
# How long the compiler works on files of a user: as they are, and without STELA_EXTERN_… in their
# domain. User time of g++ in seconds, the median; the two take turns.
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

seconds() {
  local TIMEFORMAT=%U
  { time g++ "${flags[@]}" "-I$copy/$1" "-I$copy/$1/orders" "$2" -c "$copy/$1/$3" \
    -o "$copy/object.o"; } 2>&1
}
median() { sort -n | sed -n "$((rounds / 2 + 1))p"; }

printf '%-40s %5s  %8s %8s\n' file "" without with
for file in framework/extern_templates/branch.cpp orders/{shop,commands,show,work}.cpp \
  framework/extern_templates/bank.cpp orders/domain.cpp; do
  for level in -O0 -O2; do
    for ((i = 0; i < rounds; i++)); do
      seconds without "$level" "$file" >>"$copy/without.txt"
      seconds with "$level" "$file" >>"$copy/with.txt"
    done
    printf '%-40s %5s  %8s %8s\n' "$file" "$level" "$(median <"$copy/without.txt")" \
      "$(median <"$copy/with.txt")"
    rm "$copy"/*.txt
  done
done
