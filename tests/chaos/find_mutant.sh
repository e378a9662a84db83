#!/usr/bin/env bash
# Looks for a mutant with one seed after the other: where a kill hits is up to the machine, too.
# Usage: find_mutant.sh STELA_CHAOS MUTANT
set -euo pipefail
for seed in 1 2 3 4 5; do
  if "$1" --seconds 20 --seed "$seed" --mutant "$2"; then exit 0; fi
done
echo "$2 isn't found with five seeds" >&2
exit 1
