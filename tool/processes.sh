# Source this file. A script that is ended by Ctrl-C or TERM ends all processes that it started, and
# waits for them.

# run COMMAND…: like the command alone. Bash handles signals while it waits, but not while a command
# runs.
run() {
  # Without job control the command would ignore Ctrl-C and read nothing.
  set -m
  "$@" &
  set +m
  wait $!
}

# end_below PID: ends the processes started by PID.
end_below() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    end_below "$child"
    kill "$child" 2>/dev/null || true
  done
}

# at_end COMMAND: runs COMMAND when this shell ends, even if a signal comes while it is ending. It
# may start twice.
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
