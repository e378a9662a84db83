#!/usr/bin/env bash
# Makes the pictures of the documentation: what the programs show in a real terminal.
# Usage: make.sh FOLDER-OF-PROGRAMS     for example build/release/bin
set -euo pipefail
programs=$(realpath "${1:?usage: make.sh FOLDER-OF-PROGRAMS}")
pictures=$(cd "$(dirname "$0")" && pwd)
work=/tmp/orders  # it is seen in the picture
mkdir "$work"
pids=()
loading=
finish() {
  tmux -S "$work/tmux" kill-server 2>/dev/null || true
  : >"$work/enough"
  wait "$loading" 2>/dev/null || true
  kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

cd "$work"
PATH=$PATH:/usr/sbin nats-server -a 127.0.0.1 -p -1 -js -sd jetstream --ports_file_dir . >nats.log 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  url=$(sed -n 's/.*"\(nats:[^"]*\)".*/\1/p' *.ports 2>/dev/null | head -n 1) && [ -n "$url" ] && break
  sleep 0.1
done
"$programs/orders" migrate >/dev/null
"$programs/orders" outbox enable >/dev/null
"$programs/orders" outbox partitions resize 8 >/dev/null
for worker in 1 2; do
  "$programs/orders" work "$url" >>worker.log 2>&1 &
  pids+=($!)
done
while [ ! -e enough ]; do "$programs/orders" load 300 4 >/dev/null; done &
loading=$!

tmux -S "$work/tmux" -f /dev/null new-session -d -x 100 -y 16 "$programs/orders outbox top"
sleep 30
tmux -S "$work/tmux" capture-pane -e -p |
  python3 "$pictures/terminal_to_svg.py" 100 16 >"$pictures/outbox-top.svg"
