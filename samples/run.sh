#!/usr/bin/env bash
# Installs what is missing, builds the order application, and runs it on a new SQLite file with a
# nats-server of its own on loopback. Works from any folder; leaves nothing running.
set -euo pipefail
cd "$(dirname "$0")/.."

tool/install-packages.sh

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
  rm -rf "$work"
}
trap cleanup EXIT

echo "Building the order application…"
if ! { cmake --preset release -DSTELA_BUILD_TESTS=OFF -DSTELA_BUILD_BENCHMARKS=OFF &&
       cmake --build --preset release --target orders; } >"$work/build.log" 2>&1; then
  tail -n 40 "$work/build.log" >&2
  exit 1
fi

nats=$(PATH="$PATH:/usr/sbin" command -v nats-server)
"$nats" -a 127.0.0.1 -p -1 -js -sd "$work/jetstream" --ports_file_dir "$work" \
  >"$work/nats.log" 2>&1 &
server=$!
url=
for _ in $(seq 200); do
  url=$(sed -n 's/.*"\(nats:[^"]*\)".*/\1/p' "$work"/*.ports 2>/dev/null | head -n 1 || true)
  [ -z "$url" ] || break
  sleep 0.05
done
if [ -z "$url" ]; then
  echo "nats-server didn't start:" >&2
  cat "$work/nats.log" >&2
  exit 1
fi

build/release/bin/orders "$work/shop.db" "$url"
