#!/usr/bin/env bash
# Runs clang-tidy on the product's sources, with the compile commands of a build. Remembers passed
# sources by their content, that of our headers that they include, and the configuration, so that no
# clone checks them again. Sources that the build compiles as one (STELA_UNITY) are checked as one,
# in a fraction of the time.
# Usage: tidy.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: tidy.sh BUILD}")
if [ ! -f "$build/compile_commands.json" ]; then
  echo "there is no build in $build: cmake --preset dev && cmake --build --preset dev" >&2
  exit 2
fi
export build passed=${XDG_CACHE_HOME:-$HOME/.cache}/stela-tidy
mkdir -p "$passed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work

# Clang can't read GCC's precompiled headers and rejects GCC's parameters. Files that are compiled
# as one shadow each other's names.
sed -E 's# (-Wshadow|--param [^ ]*|-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx)##g' \
  "$build/compile_commands.json" >"$work/compile_commands.json"

{ clang-tidy --version; cat .clang-tidy; } >"$work/configuration"
# One line per object of the product: its source, and our files that it reads.
ninja -C "$build" -t deps | awk -v root="$PWD/" -v build="$build/" '
  function starts(path, folder) { return index(path, folder) == 1 }
  function end_of_object() { if (line != "") print line; line = ""; source = "" }
  /^[^ ]/ { end_of_object(); next }
  NF == 1 {
    path = $1 ~ /^\// ? $1 : build $1
    while (sub(/\/[^\/]+\/\.\.\//, "/", path)) {}
    is_generated = starts(path, build)
    plain = path
    if (is_generated) plain = substr(path, length(build) + 1)
    else if (starts(path, root)) plain = substr(path, length(root) + 1)
    is_of_product = plain ~ /^(framework|eventstore|outbox|projections|tool|samples)\//
    if (source == "") {
      source = path
      checks = is_of_product && path !~ /cmake_pch/
      if (checks) line = path
    }
    if (checks && is_of_product && !is_generated) line = line " " plain
  }
  END { end_of_object() }' | sort -u >"$work/objects"

unchecked=$(comm -13 <(cut -d' ' -f2- "$work/objects" | tr ' ' '\n' | sort -u) \
  <(find framework eventstore outbox projections tool samples -name '*.cpp' | sort))
if [ -n "$unchecked" ]; then
  printf '%s wasn'"'"'t compiled in the build, so it can'"'"'t be checked; build everything first\n' $unchecked >&2
  exit 1
fi

check() {
  local file=$1 key
  key=$({ cat "$work/configuration"; sed -n "s#^$file ##p" "$work/objects" | tr ' ' '\n' | sort -u | xargs -r cat; } |
    sha256sum | cut -d' ' -f1)
  [ -e "$passed/$key" ] && return 0
  if ! said=$(clang-tidy --quiet -p "$work" "$file" 2>&1) || grep -qE '(error|warning): ' <<<"$said"; then
    grep -E '(error|warning): ' <<<"$said" >&2 || printf '%s: clang-tidy failed\n%s\n' "$file" "$said" >&2
    return 1
  fi
  : >"$passed/$key"
}
export -f check

cut -d' ' -f1 "$work/objects" | sort -u | xargs -P "$(nproc)" -I{} bash -c 'check {}'
