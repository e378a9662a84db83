# Sourced by the script of a model that is explored whole; sets what these need: model, its file without
# ".pml", and least_states. A smaller count means that something can't happen any more, and the proof is
# worth less.
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/$model.pml" .

compile() { # FLAGS-OF-THE-CHECKER MACRO…
  local flags=$1
  shift
  spin "${@/#/-D}" -a "$model.pml" >spin.log 2>&1 || { cat spin.log >&2; exit 1; }
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
  rm -f "$model.pml.trail"
  ./pan >pan.log 2>&1 || true
  if [ ! -f "$model.pml.trail" ]; then
    echo "$* isn't found" >&2
    exit 1
  fi
  local faults
  faults=$(spin "${@/#/-D}" -t "$model.pml" | sed -n 's/^ *fault: //p' | paste -sd, -)
  echo "$* is found: ${faults:-without a fault}"
}
