#!/usr/bin/env bash
# Explores the model of the relay's protocol whole, finds each mutation of it, and looks for the same
# break in the simulator, with the same kinds of faults. Usage: run.sh STELA_SIM
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sim=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/relay.pml" .

# A smaller count means that something can't happen any more, and the proof is worth less.
least_states=1000000

compile() { # FLAGS-OF-THE-CHECKER [MACRO]
  spin ${2:+-D$2} -a relay.pml >spin.log 2>&1 || { cat spin.log >&2; exit 1; }
  gcc -O2 -w -DSAFETY -DMEMLIM=8000 $1 -o pan pan.c
}

compile ""
./pan -m200000 >pan.log 2>&1 || true
states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
states=$(printf '%.0f' "${states:-0}")
if ! grep -q 'errors: 0' pan.log || grep -q 'max search depth too small\|out of memory' pan.log; then
  cat pan.log
  echo "the model breaks an invariant, or wasn't explored whole" >&2
  exit 1
fi
echo "the model holds in all of its $states states"
if [ "$states" -lt "$least_states" ]; then
  echo "that is less than $least_states: something can't happen any more" >&2
  exit 1
fi

# The mutation of the model, the same one of the relay's core, and the fault that stands in the
# simulator for what the model calls a lost reply.
while read -r macro mutation lost; do
  compile -DBFS "$macro"
  rm -f relay.pml.trail
  ./pan >pan.log 2>&1 || true
  if [ ! -f relay.pml.trail ]; then
    echo "$macro isn't found by the model" >&2
    exit 1
  fi
  faults=$(spin "-D$macro" -t relay.pml | sed -n 's/^ *fault: //p' | sed "s/lose_reply/$lost/" |
    sort -u | paste -sd, -)
  echo "$macro is found by the model: ${faults:-without a fault}"
  if "$sim" --exhaustive 2 --faults "${faults:-kill}" >sim.log; then
    if "$sim" --exhaustive 2 --faults "${faults:-kill}" --mutant "$mutation" >sim.log; then
      cat sim.log
      echo "  and $mutation isn't found in the simulator with the same faults" >&2
      exit 1
    fi
    sed -n 's/^seed [0-9]* /  replayed: /p' sim.log
  else
    cat sim.log
    echo "  and the simulator breaks an invariant without a mutation" >&2
    exit 1
  fi
done <<TABLE
NO_FENCE dedup_only lose_reply
NO_EPOCH no_epoch_in_mark lose_reply
SKIP_FAILED_ROW skip_failed_row lose_reply
NAIVE_PIPELINE naive_pipeline lose_reply
REPLIES_NOT_MATCHED replies_not_matched cut
TABLE
