#!/usr/bin/env bash
# make.sh [DATABASE…]: imports the newest exports here with the program of this tree, and exports them
# again to a folder of its version beside this script; the databases, too, which have what is new. Run
# it once for a version whose exports look different, from the commit that is released: what it wrote
# never changes. STELA is the program (default: build/dev/bin/stela).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
stela=${STELA:-$source/build/dev/bin/stela}
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
out=$here/$version
[ ! -e "$out" ] || { echo "make.sh: $out exists; what was released doesn't change" >&2; exit 1; }
newest=$(find "$here" -mindepth 1 -maxdepth 1 -type d | sort -V | tail -1)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
# take FILE NAME: by way of a database, as whoever moves a store does.
take() {
  local codec
  codec=$(sed -n '1s/.*"codec":"\([a-z_]*\)".*/\1/p' "$1")
  "$stela" migrate --db "$work/$2.db" --codec "$codec"
  "$stela" import --db "$work/$2.db" "$1"
  "$stela" export --whole --db "$work/$2.db" "$work/out/$2.jsonl"
}
for database in "$@"; do
  name=$(basename "$database" .db)
  "$stela" export --whole --db "$database" "$work/$name.jsonl"
  take "$work/$name.jsonl" "$name"
done
[ -z "$newest" ] || for file in "$newest"/*.jsonl; do
  take "$file" "$(basename "$file" .jsonl)"
done
mv "$work/out" "$out"
du -ah "$out"
