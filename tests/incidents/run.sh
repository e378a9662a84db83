#!/usr/bin/env bash
# Brings a store into fourteen incidents by real means: servers that are stopped, streams that somebody
# deletes, workers that are killed. Each time it checks what an operator is told, does literally what the
# tool prints, and checks that this heals it. Works from any folder; leaves nothing running.
# Usage: run.sh [--postgres] [--long] [--show] [INCIDENT…]
#   --postgres  on a PostgreSQL cluster of its own, in place of SQLite
#   --long      more messages, and on both engines
#   --show      also print what an operator is told
#   INCIDENT    only these; run.sh --list names them all
# The programs are those that STELA_PROGRAM and ORDERS_PROGRAM name, else those of a build in build/.
# What the tool doesn't tell yet stands in incidents.sh as known_gap: it is printed, and fails nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
. "$source_folder/tool/progress.sh"
. "$source_folder/tool/processes.sh"
. "$here/support.sh"
. "$here/incidents.sh"

engines=(sqlite)
is_long=
is_shown=
chosen=()
for argument in "$@"; do
  case $argument in
    --postgres) engines=(postgres) ;;
    --long) is_long=yes ;;
    --show) is_shown=yes ;;
    --list) printf '%s\n' "${all_incidents[@]}"; exit 0 ;;
    --help | -h) sed -n '5,11s/^# //p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option '$argument'; there are --postgres, --long, --show and --list" >&2; exit 2 ;;
    *)
      [[ " ${all_incidents[*]} " == *" $argument "* ]] ||
        { echo "run.sh: there is no incident '$argument'; run.sh --list names them" >&2; exit 2; }
      chosen+=("$argument") ;;
  esac
done
[ -z "$is_long" ] || engines=(sqlite postgres)
[ ${#chosen[@]} -gt 0 ] || chosen=("${all_incidents[@]}")

# A small disk is mounted where nobody else sees it, and is gone with the last of these processes. Who
# isn't root becomes it in a namespace, unless a PostgreSQL server is needed, which refuses root.
apart=(unshare -m)
[ "$(id -u)" = 0 ] || apart=(unshare -rm)
[ "$(id -u)" = 0 ] || [ "${engines[*]}" = sqlite ] || apart=(false)
if [ -z "${INCIDENTS_MOUNT_NAMESPACE:-}" ] && "${apart[@]}" true 2>/dev/null; then
  INCIDENTS_MOUNT_NAMESPACE=yes exec "${apart[@]}" "$here/run.sh" "$@"
fi

find_programs
work=$(mktemp -d)
chmod 711 "$work"
finish() { rm -rf "$work"; }

# tell ENGINE INCIDENT: a line of how it ended, and all of it if it failed.
tell() {
  local began=$SECONDS status log=$work/$1.$2.log
  # Not as a condition: in one Bash goes on after a command that failed.
  set +e
  (set -e; play "$1" "$2") >"$log" 2>&1
  status=$?
  set -e
  case $status in
    0)
      stage "$2 on $1: as it should be, $((SECONDS - began)) s"
      sed -n "${is_shown:+s/^/         /p;}s/^\(known\|no\) gap: /         &/p" "$log" ;;
    "$skipped") stage "$2 on $1: skipped: $(tail -n 1 "$log")" ;;
    *)
      stage "$2 on $1: FAILED after $((SECONDS - began)) s"
      cat "$log"
      echo "$2 on $1" >>"$work/failed" ;;
  esac >"$log.told"
  cat "$log.told"
}

# They wait more than they compute: two at a time.
tell_all() {
  at_end finish
  local engine incident
  for engine in "${engines[@]}"; do
    for incident in "${chosen[@]}"; do
      tell "$engine" "$incident" &
      (($(jobs -rp | wc -l) < 2)) || wait -n
    done
  done
  wait
  [ ! -e "$work/failed" ] || { echo "Failed: $(paste -sd, "$work/failed")" >&2; return 1; }
  stage "All of it is as it should be."
}
run tell_all
