#!/usr/bin/env bash
# Shows the shop in a browser: the console answers, and ends with everything else when it is told to.
# Usage: console.sh STORY…
set -euo pipefail
out=$(mktemp)
"$@" --console >"$out" 2>&1 &
story=$!
trap 'kill "$story" 2>/dev/null || true; cat "$out"; rm -f "$out"' EXIT

for _ in $(seq 600); do
  ! grep -q '#k=' "$out" || break
  sleep 0.05
done
port=$(sed -n 's|.*127.0.0.1:\([0-9]*\)/#k=.*|\1|p' "$out")
[ -n "$port" ] || { echo "it printed no link" >&2; exit 1; }
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$port" >&3
grep -q '200 OK' <&3 || { echo "it doesn't answer" >&2; exit 1; }
exec 3>&-
kill -TERM "$story"
status=0
wait "$story" || status=$?
[ "$status" = 143 ] || { echo "it ended with $status" >&2; exit 1; }
! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "it left the console running" >&2; exit 1; }
