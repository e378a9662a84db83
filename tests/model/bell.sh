#!/usr/bin/env bash
# Explores the model of the bell of appends on PostgreSQL whole, and finds each mutation of it.
set -euo pipefail
model=bell
least_states=1000000
. "$(dirname "$0")/explore.sh"

holds
for mutation in NOBODY_RINGS RINGS_BEFORE_COMMIT BELL_RELEASED_BEFORE_COMMIT LOOKS_BEFORE_IT_LIES_DOWN; do
  breaks FOLLOWERS=1 "$mutation"
done
