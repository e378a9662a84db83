#!/usr/bin/env bash
# What passed isn't repeated until an input has changed; what failed is; what isn't there is no input.
set -euo pipefail
script=$(realpath "$(dirname "$0")/../unless_passed.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache
unset STELA_TESTS_AGAIN

printf '#!/usr/bin/env bash\necho run >>runs\n[ ! -e broken ]\n' >program
chmod +x program
mkdir folder
echo one >folder/input

expect_runs() { # COUNT WHY
  if [ "$(wc -l <runs)" -ne "$1" ]; then
    echo "$2: ran $(wc -l <runs) times, not $1" >&2
    exit 1
  fi
}
refused() { # COMMAND…
  if "$@" >said 2>&1; then
    echo "passed, and should not: $*" >&2
    exit 1
  fi
}

touch broken
refused "$script" folder -- ./program
refused "$script" folder -- ./program
expect_runs 2 "what failed"
rm broken
"$script" folder -- ./program
"$script" folder -- ./program | grep -q 'passed before'
expect_runs 3 "what passed"
"$script" folder -- ./program with an argument
expect_runs 4 "another command"
echo two >folder/input
"$script" folder -- ./program
expect_runs 5 "another input"
echo '# changed' >>program
"$script" folder -- ./program
expect_runs 6 "another program"
STELA_TESTS_AGAIN=1 "$script" folder -- ./program
expect_runs 7 "asked for"
refused "$script" missing -- ./program
expect_runs 7 "without its input"
