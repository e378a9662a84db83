# To be sourced: a script that is told to end, by Ctrl-C or TERM, ends all that it has begun, and waits
# for it.

# run COMMAND…: as the command alone. Bash hears a signal while it waits, and not while a command runs.
run() {
  # With job control, or the command would ignore Ctrl-C and read nothing.
  set -m
  "$@" &
  set +m
  wait $!
}

# end_below PID: ends what the process has begun.
end_below() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    end_below "$child"
    kill "$child" 2>/dev/null || true
  done
}

# at_end COMMAND: is done when this shell ends, also by a signal that comes while it ends already. It may
# begin twice.
at_end() {
  trap "$1" EXIT
  trap "trap '' INT TERM; $1; trap - EXIT; exit 143" INT TERM
}

end_all() {  # STATUS
  trap '' INT TERM
  end_below $$
  wait
  exit "$1"
}
trap 'end_all 130' INT
trap 'end_all 143' TERM
