#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install-packages.sh [tests|postgres]
# "tests" adds packages for the tests, benchmarks and fuzzers only; "postgres" adds the server.
set -euo pipefail

packages=(
  cmake g++ ninja-build pkg-config
  libboost-dev libcereal-dev libhowardhinnant-date-dev libnats-dev libncurses-dev libpq-dev libsimdjson-dev libsodium-dev libsqlite3-dev
  libtomlplusplus-dev libxxhash-dev tzdata
  nats-server sqlite3
)
[ "${1:-}" != postgres ] || packages+=(postgresql-15)
if [ "${1:-}" = tests ]; then
  packages+=(ccache chromium clang clang-format clang-tidy doxygen libbenchmark-dev libgmock-dev libgtest-dev librapidcheck-dev nodejs openssl patch pgbouncer postgresql-15 prometheus python3 spin systemd tmux)
  # Other builds of nodejs bring their own npm, which conflicts with Debian's package.
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
# The tests start servers of their own. Debian's packages would also create and start a cluster
# "main", a PgBouncer and a Prometheus. The settings that prevent this are removed afterwards.
no_cluster=/etc/postgresql-common/createcluster.d/stela.conf
no_start=/usr/sbin/policy-rc.d
undo=()
trap 'rm -f "$log"; [ ${#undo[@]} -eq 0 ] || "${as_root[@]}" rm -f "${undo[@]}"' EXIT
keep_servers_from_starting() {
  "${as_root[@]}" mkdir -p "${no_cluster%/*}"
  undo+=("$no_cluster")
  echo "create_main_cluster = false" | "${as_root[@]}" tee "$no_cluster" >/dev/null
  [ -e "$no_start" ] && return
  undo+=("$no_start")
  printf '#!/bin/sh\ncase "$1" in pgbouncer*|postgresql*|prometheus*) exit 101 ;; esac\n' |
    "${as_root[@]}" tee "$no_start" >/dev/null
  "${as_root[@]}" chmod +x "$no_start"
}
case " ${missing[*]} " in *" postgresql-15 "*|*" pgbouncer "*|*" prometheus "*) keep_servers_from_starting ;; esac
install() {
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >"$log" 2>&1
}
if ! install; then
  "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
  install || { cat "$log" >&2; exit 1; }
fi
# Also prevents their start at the next boot.
case " ${missing[*]} " in
  *" pgbouncer "*)
    if [ -d /run/systemd/system ]; then "${as_root[@]}" systemctl disable --quiet pgbouncer; fi ;;
esac
