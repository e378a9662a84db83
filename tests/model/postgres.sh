#!/usr/bin/env bash
# Explores the model of appends on PostgreSQL whole, with a synchronous and with an asynchronous standby,
# and finds each mutation of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/postgres.pml" .

# A smaller count means that something can't happen any more, and the proof is worth less.
least_states=5000000

compile() { # FLAGS-OF-THE-CHECKER MACRO…
  local flags=$1
  shift
  spin "${@/#/-D}" -a postgres.pml >spin.log 2>&1 || { cat spin.log >&2; exit 1; }
  gcc -O2 -w -DSAFETY -DMEMLIM=8000 $flags -o pan pan.c
}

holds() { # MACRO…
  compile "" "$@"
  ./pan -m200000 >pan.log 2>&1 || true
  local states
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  states=$(printf '%.0f' "${states:-0}")
  if ! grep -q 'errors: 0' pan.log || grep -q 'max search depth too small\|out of memory' pan.log; then
    cat pan.log
    echo "the model ($*) breaks a promise, or wasn't explored whole" >&2
    exit 1
  fi
  echo "the model ($*) holds in all of its $states states"
  if [ "$states" -lt "$least_states" ]; then
    echo "that is less than $least_states: something can't happen any more" >&2
    exit 1
  fi
}

breaks() { # MACRO…
  compile -DBFS "$@"
  rm -f postgres.pml.trail
  ./pan >pan.log 2>&1 || true
  if [ ! -f postgres.pml.trail ]; then
    echo "$* isn't found" >&2
    exit 1
  fi
  local faults
  faults=$(spin "${@/#/-D}" -t postgres.pml | sed -n 's/^ *fault: //p' | paste -sd, -)
  echo "$* is found: ${faults:-without a fault}"
}

holds SYNCHRONOUS
holds ASYNCHRONOUS

for mutation in \
  ANSWER_BEFORE_FLUSH PUBLISH_BEFORE_FLUSH NO_OP_BEFORE_FLUSH CONFLICT_BEFORE_FLUSH \
  CANCELLED_IS_DURABLE SETTLE_BY_TRANSACTION_ID SEQUENCE_OUTSIDE_LOCK VERSION_OUTSIDE_LOCK \
  SNAPSHOT_BEFORE_LOCK LOCK_RELEASED_BEFORE_COMMIT; do
  breaks SYNCHRONOUS "$mutation"
done
for mutation in KEEP_DURABLE_POSITION FAILOVER_UNNOTICED; do
  breaks ASYNCHRONOUS "$mutation"
done
