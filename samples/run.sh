#!/usr/bin/env bash
# Installs missing packages, builds the order application, and tells its story on a new database
# with its own nats-server on loopback. Works from any folder; leaves nothing running.
# Usage: run.sh [--postgres] [--keep] [--load N | --console | --tenants]
#   --postgres  on a PostgreSQL cluster of its own, which it starts and removes
#   --keep      leave the data for exploring, and say where it is
#   --load N    place N orders instead, and say how fast that was
#   --console   place orders instead, some of them in vain, and show it all in a browser until Ctrl-C
#   --tenants   tell the story of a chain of three shops instead, each with a store of its own
set -euo pipefail
cd "$(dirname "$0")/.."
. tool/progress.sh
. tool/processes.sh

case " $* " in
  *" --help "* | *" -h "*) sed -n '4,9s/^# //p' "samples/run.sh"; exit 0 ;;
esac
# Checked before some minutes of building.
samples/story.sh --check "$@"
case " $* " in
  *" --postgres "*) tool/install-packages.sh postgres ;;
  *) tool/install-packages.sh ;;
esac
# Without PostgreSQL's engine the first build is faster. A build that has the engine keeps it.
postgres=OFF
if [[ " $* " == *" --postgres "* ]] ||
  grep -qs '^STELA_WITH_POSTGRES:BOOL=ON' build/release/CMakeCache.txt; then
  postgres=ON
fi

build() {
  local log
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --preset release -DSTELA_BUILD_TESTS=OFF -DSTELA_BUILD_BENCHMARKS=OFF \
    -DSTELA_WITH_POSTGRES=$postgres >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    exit 1
  fi
  cmake --build --preset release --target orders shipping 2>&1 |
    show_progress ninja "building the order application"
}

[ -x build/release/bin/orders ] || stage "Building the order application, some minutes the first time…"
run build
exec samples/story.sh "$PWD/build/release/bin" "$@"
