#!/usr/bin/env bash
# Ends the story in its middle: it leaves no process and no file. Usage: ended.sh SIGNAL STORY…
set -euo pipefail
signal=$1
shift
export TMPDIR
TMPDIR=$(mktemp -d)
trap 'rm -rf "$TMPDIR"' EXIT

"$@" >"$TMPDIR.log" 2>&1 &
story=$!
for _ in $(seq 600); do
  ! grep -q 'killed with -9' "$TMPDIR.log" || break
  sleep 0.05
done
kill "-$signal" "$story"
status=0
wait "$story" || status=$?
cat "$TMPDIR.log"
rm "$TMPDIR.log"
if [ "$status" != 143 ]; then
  echo "it ended with $status" >&2
  exit 1
fi
left=$(ls -A "$TMPDIR")
if [ -n "$left" ]; then
  echo "it left $left" >&2
  exit 1
fi
for process in /proc/[0-9]*; do
  if [ "${process#/proc/}" != $$ ] && grep -zqx "TMPDIR=$TMPDIR" "$process/environ" 2>/dev/null; then
    # The grep that looks, and the like.
    case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
      *nats-server* | *orders* | *postgres*) echo "it left ${process#/proc/}" >&2; exit 1 ;;
    esac
  fi
done
