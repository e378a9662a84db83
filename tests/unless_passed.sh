#!/usr/bin/env bash
# Runs a test without chance in it (no clock, no socket, fixed seeds), unless it has passed before with
# the same inputs: files, or folders whole. The command's program and the libraries that it loads count
# as inputs, too.
# With STELA_TESTS_AGAIN set it runs all the same.
# Usage: unless_passed.sh INPUT… -- COMMAND…
set -euo pipefail
inputs=()
while [ "${1:?usage: unless_passed.sh INPUT… -- COMMAND…}" != -- ]; do
  inputs+=("$1")
  shift
done
shift

passed=${XDG_CACHE_HOME:-$HOME/.cache}/stela-tests
mkdir -p "$passed"
# What isn't there has no content, and a test without its input must fail by itself.
content() {
  find -L "$@" -type f -print0 | sort -z | xargs -0 sha256sum
}
key=$({
  printf '%s\n' "$@"
  program=$(command -v "$1")
  libraries=$(ldd "$program" 2>/dev/null | grep -oE '/[^ ]+' || true)
  content "$0" "$program" $libraries ${inputs[@]+"${inputs[@]}"}
} | sha256sum | cut -d' ' -f1)

if [ -z "${STELA_TESTS_AGAIN:-}" ] && [ -e "$passed/$key" ]; then
  echo "passed before with the same inputs, $(date -r "$passed/$key" '+%F %T')"
  exit 0
fi
"$@"
: >"$passed/$key"
