#!/usr/bin/env bash
# Runs the tests of NATS, and chaos for a while, against the nats-servers of Debian's other suites.
# Each is unpacked into a folder of its own and is gone afterwards; nothing is installed.
#   tests/newer-servers.sh [SUITE…]     bookworm-backports trixie trixie-backports forky sid if none is
#                                       named; a suite without a version of its own is passed over
# One line for each version at the end; exit 1 if a test fails with one of them.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm-backports trixie trixie-backports forky sid)
# One server, with messages that are deleted, and a cluster of three.
chaos=("--seconds 20 --seed 31" "--seconds 20 --seed 40 --servers 3")

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

quietly() {
  if ! "$@" >"$dir/log" 2>&1; then
    cat "$dir/log"
    return 1
  fi
}

# --- apt, with lists of its own

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || { echo "apt knows no mirror of Debian" >&2; exit 1; }
mkdir -p "$dir"/{lists,cache/archives}/partial
touch "$dir/status"
for suite in "${suites[@]}"; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$dir/sources.list"
cat >"$dir/apt.conf" <<CONF
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "$dir/lists";
Dir::State::Status "$dir/status";
Dir::Cache "$dir/cache";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$dir/apt.conf
quietly apt-get update -qq

# fetch SUITE: the program of its package; nothing if it has none.
fetch() {
  local into=$dir/$1
  mkdir -p "$into"
  (cd "$into" && apt-get download -qq "nats-server/$1") >"$dir/log" 2>&1 || return 0
  dpkg-deb -x "$into"/*.deb "$into"
  find "$into" -type f -name nats-server -perm -u+x | head -n 1
}

# --- the tests

[ -f build/dev/build.ninja ] || quietly cmake --preset dev
quietly cmake --build --preset dev \
  --target stela_nats_tests stela_end_to_end_tests stela_chaos

# passes NAME COMMAND…: shows what it says if it fails, and says so.
passes() {
  local name=$1
  shift
  quietly "$@" && return
  failures+=("$name")
}

status=0
seen=""
summary=()
for suite in "${suites[@]}"; do
  STELA_NATS_SERVER=$(fetch "$suite")
  export STELA_NATS_SERVER
  if [ -z "$STELA_NATS_SERVER" ]; then
    summary+=("$suite: has no nats-server")
    continue
  fi
  version=$("$STELA_NATS_SERVER" --version | sed 's/.*v//')
  if [[ $seen == *" $version "* ]]; then
    summary+=("$suite: $version, as above")
    continue
  fi
  seen+=" $version "
  echo "$suite: nats-server $version"
  failures=()
  passes "ctest -L nats" ctest --preset dev -L '^(nats|end_to_end)$' --no-tests=error -j "$(nproc)"
  for run in "${chaos[@]}"; do
    read -ra options <<<"$run"
    passes "chaos $run" build/dev/bin/stela_chaos "${options[@]}"
  done
  if [ ${#failures[@]} -eq 0 ]; then
    summary+=("$suite: $version, all tests passed")
  else
    summary+=("$suite: $version, FAILED: ${failures[*]}")
    status=1
  fi
done
printf '%s\n' "${summary[@]}"
exit $status
