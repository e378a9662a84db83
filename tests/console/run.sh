#!/usr/bin/env bash
# Walks through the console's page with a browser, against `stela serve` on a store in the middle of an
# incident: real broker, real workers. Also checks that the page in the tree is what its sources give.
# Works from any folder; leaves nothing running.
# Usage: run.sh [--pictures FOLDER] [CHECK…]
#   --pictures FOLDER  keep a picture of each page: light, dark, narrow and wide
#   CHECK              only checks whose name contains this word
# The programs are those of STELA_PROGRAMS, else of the build in build/ci; the page is the one that is built in, or that
# of the folder STELA_WEB_ROOT. Needs node, nats-server, sqlite3 and chromium.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
. "$source_folder/tool/processes.sh"
. "$here/store.sh"
programs=${STELA_PROGRAMS:-$source_folder/build/ci/bin}
export PICTURES=
if [ "${1:-}" = --pictures ]; then
  mkdir -p "$2"
  PICTURES=$(cd "$2" && pwd)
  shift 2
fi

for program in node npm nats-server sqlite3 chromium; do
  PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || { echo "run.sh: $program is missing" >&2; exit 1; }
done
work=$(mktemp -d)
finish() {
  end_below "$BASHPID"
  rm -rf "$work"
}

compare_bundle() {
  cp -r "$source_folder/tool/console/web" "$work/web"
  (cd "$work/web" && npm ci --ignore-scripts --silent && npm run --silent check && node build.mjs "$work/dist/") >/dev/null
  diff -r "$work/dist" "$source_folder/tool/console/dist" >/dev/null ||
    { echo "tool/console/dist isn't what tool/console/web gives: npm run build" >&2; return 1; }
}

check() {
  at_end finish
  compare_bundle
  (cd "$here" && npm ci --ignore-scripts --silent)
  start_nats
  { make_store; break_store; start_workers; } 2>"$work/store.log" || { cat "$work/store.log" >&2; return 1; }
  eventually is_broken
  stela migrate >/dev/null
  "$programs/stela" migrate --db "$work/empty.db" >/dev/null
  STELA_PROGRAM="$programs/stela" WORK="$work" node "$here/walk.mjs" "$@"
}
run check "$@"
