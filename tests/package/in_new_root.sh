#!/usr/bin/env bash
# Installs the Debian packages of a folder in a new root, builds the consumer there and runs it and
# the tool. Needs root, mmdebstrap and a Debian mirror. Usage: in_new_root.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/packages/consumer"
cp "$1"/*.deb "$work/packages"
cp "$here"/consumer/* "$work/packages/consumer"
# What makes our own builds quick isn't there.
unset CMAKE_CXX_COMPILER_LAUNCHER
cat >"$work/packages/try.sh" <<'END'
set -e
apt-get install -y -q --no-install-recommends /opt/packages/*.deb
cmake -S /opt/packages/consumer -B /opt/b -G Ninja -DCONSUMER_USES_NATS=ON
cmake --build /opt/b
/opt/b/consumer
stela version
stela migrate --db /tmp/shop.db
stela events append --db /tmp/shop.db --stream order-1 --type order.placed --data '{}'
stela verify --db /tmp/shop.db
echo "everything works"
END
if ! mmdebstrap --variant=apt --include=cmake,g++,ninja-build,pkg-config \
  --customize-hook="copy-in $work/packages /opt" \
  --customize-hook='chroot "$1" sh /opt/packages/try.sh' \
  bookworm "$work/root.tar" >"$work/log" 2>&1 || ! grep -q '^everything works$' "$work/log"; then
  tail -n 60 "$work/log" >&2
  exit 1
fi
grep '^stela ' "$work/log" | sed 's/^/  /'
echo "  installed in a new root: the consumer and the tool run"
