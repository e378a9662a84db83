#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install-packages.sh [tests]
# With "tests" also those that only the tests, benchmarks and fuzzers need.
set -euo pipefail

packages=(
  cmake g++ ninja-build pkg-config
  libboost-dev libcereal-dev libnats-dev libncurses-dev libsimdjson-dev libsqlite3-dev
  libtomlplusplus-dev libxxhash-dev
  nats-server sqlite3
)
if [ "${1:-}" = tests ]; then
  packages+=(ccache clang-format clang-tidy doxygen libbenchmark-dev libgmock-dev libgtest-dev librapidcheck-dev nodejs openssl patch spin systemd tmux)
  # Other builds of nodejs than Debian's bring their own, and conflict with its package.
  command -v npm >/dev/null || packages+=(npm)
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "These packages are missing; install them and run this again:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "Installing ${missing[*]}…"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >"$log" 2>&1
}
if ! install; then
  "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
  install || { cat "$log" >&2; exit 1; }
fi
