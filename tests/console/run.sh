#!/usr/bin/env bash
# Walks through the console's page with a browser, against `stela serve` on a store in the middle of an
# incident: real broker, real workers. Also checks that the page in the tree is what its sources give.
# Works from any folder; leaves nothing running.
# Usage: run.sh [--postgres] [--types] [--guide] [--pictures FOLDER] [CHECK…]
#   --postgres         on a PostgreSQL cluster of its own, which it starts and removes
#   --types            note what the commands print in tool/console/web/src/printed.ts
#   --guide            make the pictures of docs/guides/console.md anew
#   --pictures FOLDER  keep a picture of each page: light, dark, narrow and wide
#   CHECK              only checks whose name contains this word
# The programs are those of STELA_PROGRAMS, else of the build in build/ci; the page is the one that is built in, or that
# of the folder STELA_WEB_ROOT. Needs node, nats-server, chromium, and sqlite3 or psql.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
. "$source_folder/tool/processes.sh"
. "$here/store.sh"
programs=${STELA_PROGRAMS:-$source_folder/build/ci/bin}
# The cluster is there for as long as this script runs again in it.
if [ "${1:-}" = --postgres ] && [ -z "${SHOP:-}" ]; then
  exec "$source_folder/samples/with-postgres.sh" "$here/run.sh" "$@"
fi
engine=sqlite3
if [ "${1:-}" = --postgres ]; then
  engine=psql
  shift
fi
export PICTURES= GUIDE= TYPES= DB EMPTY_DB
if [ "${1:-}" = --types ]; then
  TYPES=yes
  set -- 'the types of the page'
fi
if [ "${1:-}" = --guide ]; then
  GUIDE=$source_folder/docs/pictures
  mkdir -p "$GUIDE"
  shift
fi
if [ "${1:-}" = --pictures ]; then
  mkdir -p "$2"
  PICTURES=$(cd "$2" && pwd)
  shift 2
fi

for program in node npm nats-server "$engine" chromium; do
  PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || { echo "run.sh: $program is missing" >&2; exit 1; }
done
work=$(mktemp -d)
DB=$work/shop.db
EMPTY_DB=$work/empty.db
if [ "$engine" = psql ]; then
  DB=$SHOP
  EMPTY_DB=${SHOP/\/shop?/\/empty?}
fi
log=$work/store.log
finish() {
  # What went wrong before there was a store.
  [ ! -s "$log" ] || cat "$log" >&2
  end_below "$BASHPID"
  for _ in $(seq 100); do
    [ -n "$(jobs -pr)" ] || break
    sleep 0.1
  done
  rm -rf "$work"
}

compare_bundle() {
  cp -r "$source_folder/tool/console/web" "$work/web"
  (cd "$work/web" && npm ci --ignore-scripts --silent && npm run --silent check && node build.mjs "$work/dist/") >"$work/npm.log" ||
    { cat "$work/npm.log" >&2; return 1; }
  diff -r "$work/dist" "$source_folder/tool/console/dist" >/dev/null ||
    { echo "tool/console/dist isn't what tool/console/web gives: npm run build" >&2; return 1; }
}

check() {
  at_end finish
  [ "$engine" = psql ] || [ -n "$TYPES" ] || compare_bundle
  (cd "$here" && npm ci --ignore-scripts --silent)
  start_nats
  { make_store; break_store; start_workers; } 2>"$log"
  eventually is_broken
  log=
  stela migrate >/dev/null
  [ "$engine" = sqlite3 ] || psql -q "$DB" -c 'CREATE DATABASE empty'
  "$programs/stela" migrate --db "$EMPTY_DB" >/dev/null
  # Each of its waits ends; this is for what nobody thought of.
  STELA_PROGRAM="$programs/stela" WORK="$work" timeout -k 10 1200 node "$here/walk.mjs" "$@"
}
run check "$@"
