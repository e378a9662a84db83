#!/usr/bin/env bash
# make.sh [BUILD]: builds what makes the old databases from this tree, in the folder BUILD (default:
# build/dev), and writes those of this version to a folder of its number beside this script. Run it
# once for each version that is released, from the commit that is; what it wrote never changes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(realpath -m "${1:-$source/build/dev}")
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
out=$here/$version
[ ! -e "$out" ] || { echo "make.sh: $out exists; what was released doesn't change" >&2; exit 1; }

[ -e "$build/CMakeCache.txt" ] || cmake -S "$source" -B "$build" -DSTELA_BUILD_TESTS=ON
cmake --build "$build" --target stela_make_old_databases stela_program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/made" "$work/copy" "$work/out"
"$build/bin/stela_make_old_databases" "$work/made"

# Of copies: whoever opens a database changes it.
for database in "$work"/made/*.db; do
  name=$(basename "$database" .db)
  [[ $name != *.broker ]] || continue
  cp "$work/made/$name".db* "$work/copy/"
  "$build/bin/stela" export --db "$work/copy/$name.db" "$work/out/$name.jsonl"
done
tar -C "$work/made" --sort=name --owner=0 --group=0 --numeric-owner -cJf "$work/out/databases.tar.xz" .
mv "$work/out" "$out"
du -ah "$out"
