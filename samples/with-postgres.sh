#!/usr/bin/env bash
# Runs a command with a PostgreSQL cluster of its own, which it reaches by a Unix socket alone. Leaves
# nothing behind. Usage: with-postgres.sh COMMAND…
#   The command gets SHOP, the URL of an empty database. Its files are in memory, if there is room.
set -euo pipefail
. "$(dirname "$0")/../tool/processes.sh"
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }

find_programs() {
  local folder
  for folder in /usr/lib/postgresql/{17,16,15}/bin; do
    [ ! -x "$folder/postgres" ] || { echo "$folder"; return; }
  done
  echo "with-postgres.sh: PostgreSQL isn't there; install the package postgresql" >&2
  return 1
}
programs=$(find_programs)

# The server refuses to run as root.
as_server=()
user=$(id -un)
if [ "$(id -u)" = 0 ]; then
  user=postgres
  as_server=(setpriv "--reuid=$user" "--regid=$user" --clear-groups)
fi

folder=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
[ "$(id -u)" != 0 ] || chown "$user" "$folder"
server=
finish() {
  # SIGINT ends the server's sessions and stops it.
  [ -z "$server" ] || { kill -INT "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
  rm -rf "$folder"
}
trap finish EXIT

# Runs in a folder that the server's user may enter.
start() {
  cd "$folder"
  "${as_server[@]}" "$programs/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C \
    --no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; return 1; }
  setpriv --pdeathsig INT "${as_server[@]}" "$programs/postgres" -D "$folder/data" \
    -c listen_addresses= -c "unix_socket_directories=$folder" -c max_connections=50 \
    >"$folder/server.log" 2>&1 &
  server=$!
  cd "$OLDPWD"
}
start
for _ in $(seq 200); do
  ! "$programs/pg_isready" -q -h "$folder" || break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.05
done
"$programs/createdb" -h "$folder" -U postgres shop || { cat "$folder/server.log" >&2; exit 1; }

export SHOP="postgresql://postgres@/shop?host=$folder"
run "$@"
