#!/usr/bin/env bash
# Runs clang-tidy on the product's sources, with the compile commands of a build. A file that passed
# is remembered by its content, that of the headers of ours that it includes, and the configuration,
# so that it isn't checked again, in this clone or in another. A build with STELA_UNITY is checked in
# a fraction of the time; the checks that look at a file by itself need one without.
# Usage: tidy.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: tidy.sh BUILD}
if [ ! -f "$build/compile_commands.json" ]; then
  echo "there is no build in $build: cmake --preset dev && cmake --build --preset dev" >&2
  exit 2
fi
export build passed=${XDG_CACHE_HOME:-$HOME/.cache}/stela-tidy
mkdir -p "$passed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work

# Clang can't read GCC's precompiled headers, and has none of its parameters.
sed -E 's# (--param [^ ]*|-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx)##g' \
  "$build/compile_commands.json" >"$work/compile_commands.json"

{ clang-tidy --version; cat .clang-tidy; } >"$work/configuration"
# A line for each object of the product: its source, which may be several files compiled as one, and
# what it includes of ours.
ninja -C "$build" -t deps | awk -v root="$PWD/" -v build="$build/" '
  function done() { if (line != "") print line; line = ""; source = "" }
  /^[^ ]/ { done(); next }
  NF == 1 {
    path = $1
    if (index(path, root) == 1) path = substr(path, length(root) + 1)
    else if (!sub(/^\.\.\/\.\.\//, "", path) && path !~ /^\//) path = build path
    if (source == "") {
      source = plain = path
      if (index(plain, build) == 1) plain = substr(plain, length(build) + 1)
      is_ours = plain ~ /^(framework|eventstore|outbox|projections|tool|samples)\// && path !~ /cmake_pch/
    }
    if (is_ours && (path == source || path ~ /^(framework|eventstore|outbox|projections|tool|samples)\//)) line = line path " "
  }
  END { done() }' | sort -u >"$work/includes"

check() {
  local file=$1 includes key
  includes=$(sed -n "s#^$file ##p" "$work/includes")
  key=$({ cat "$work/configuration"; tr ' ' '\n' <<<"$includes" | sort -u | xargs -r cat "$file"; } |
    sha256sum | cut -d' ' -f1)
  [ -e "$passed/$key" ] && return 0
  # What clang 14 can't compile (a structured binding in a lambda), or warns of, isn't a finding: GCC
  # compiles it, and its warnings are errors.
  said=$(clang-tidy --quiet -p "$work" "$file" 2>/dev/null) || [ -n "$said" ] ||
    said="$file: clang-tidy failed"
  if grep -v 'clang-diagnostic-' <<<"$said" |
    grep -E 'clang-tidy failed$|(error|warning): .*\[.*\]$' >&2; then
    return 1
  fi
  # A file of which the build doesn't know what it includes is checked each time.
  [ -z "$includes" ] || : >"$passed/$key"
}
export -f check

cut -d' ' -f1 "$work/includes" | xargs -P "$(nproc)" -I{} bash -c 'check {}'
