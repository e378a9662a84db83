#!/usr/bin/env bash
# Explores the model of asynchronous appends whole, and finds each mutation of it.
set -euo pipefail
model=async
least_states=700000
. "$(dirname "$0")/explore.sh"

holds
for mutation in NO_THREAD_ASKED_FOR CANCELS_WHAT_HAS_BEGUN NOBODY_GOES_ON ENDS_BEFORE_WHAT_HAS_BEGUN; do
  breaks "$mutation"
done
