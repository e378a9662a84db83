#!/usr/bin/env bash
# Builds the consumer in every way that there is: against a shared and a minimal install, by
# FetchContent, and against the Debian packages in a new root. Takes some minutes.
# Usage: every_way.sh [shared|minimal|fetch-content|deb]...
# `deb` needs mmdebstrap, root and a Debian mirror; without them it only unpacks the packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    tail -n 60 "$work/log" >&2
    exit 1
  fi
}

consume() {  # how, with NATS, more arguments
  quietly cmake "-DHOW=$1" "-DWITH_NATS=$2" "-DWITH_TOOL=$2" "-DWORK=$work/consumer" -DCXX=g++ "${@:3}" \
    -P "$here/consumer.cmake"
  echo "  consumer by $1: builds and runs"
}

build() {  # preset, prefix
  quietly cmake --preset "$1" -S "$source" -B "$work/$1" "-DCMAKE_INSTALL_PREFIX=$2"
  quietly cmake --build "$work/$1"
  quietly cmake --install "$work/$1"
  if [ -x "$2/bin/stela" ]; then quietly "$2/bin/stela" version; fi
}

shared() {
  echo "Shared libraries"
  build package "$work/prefix-shared"
  consume find-package ON "-DPREFIX=$work/prefix-shared"
  consume pkg-config ON "-DPREFIX=$work/prefix-shared"
}

minimal() {
  echo "Minimal: SQLite alone, static"
  build minimal "$work/prefix-minimal"
  consume find-package OFF "-DPREFIX=$work/prefix-minimal"
  if find "$work/prefix-minimal" -name '*nats*' | grep -q .; then
    echo "  the minimal install has files of NATS" >&2
    exit 1
  fi
}

fetch_content() {
  echo "Sources"
  consume fetch-content OFF "-DSOURCE=$source"
  consume folder ON "-DSOURCE=$source"
}

deb() {
  echo "Debian packages"
  quietly cmake --preset package -S "$source" -B "$work/deb"
  quietly cmake --build "$work/deb"
  (cd "$work/deb" && quietly cpack -G DEB)
  local packages=("$work"/deb/packages/*.deb)
  printf '  %s\n' "${packages[@]##*/}"
  if [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null; then
    "$here/in_new_root.sh" "$work/deb/packages"
    return
  fi
  for package in "${packages[@]}"; do dpkg-deb -x "$package" "$work/unpacked"; done
  consume find-package ON "-DPREFIX=$work/unpacked/usr"
  echo "  (unpacked only: installing in a new root needs root and mmdebstrap)"
}

if [ $# -eq 0 ]; then set -- shared minimal fetch-content deb; fi
for way in "$@"; do
  case $way in
    shared | minimal | deb) "$way" ;;
    fetch-content) fetch_content ;;
    *) echo "every_way.sh: there is no way '$way'; there are shared, minimal, fetch-content, deb" >&2
       exit 2 ;;
  esac
done
