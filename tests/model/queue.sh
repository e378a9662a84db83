#!/usr/bin/env bash
# Explores the model of a store's line of writers whole, and finds each mutation of it.
set -euo pipefail
model=queue
least_states=200000
. "$(dirname "$0")/explore.sh"

holds
for mutation in NOBODY_LEADS_NEXT LINE_MOVES_BEFORE_ORDER LANE_IS_FREE_BEFORE_FLUSH WOKEN_BEFORE_FLUSH; do
  breaks "$mutation"
done
