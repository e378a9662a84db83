#!/usr/bin/env bash
# Explores the model of appends on PostgreSQL whole, with a synchronous and with an asynchronous standby,
# and finds each mutation of it.
set -euo pipefail
model=postgres
least_states=5000000
. "$(dirname "$0")/explore.sh"

holds SYNCHRONOUS
holds ASYNCHRONOUS

for mutation in \
  ANSWER_BEFORE_FLUSH PUBLISH_BEFORE_FLUSH NO_OP_BEFORE_FLUSH CONFLICT_BEFORE_FLUSH \
  CANCELLED_IS_DURABLE SETTLE_BY_TRANSACTION_ID SEQUENCE_OUTSIDE_LOCK VERSION_OUTSIDE_LOCK \
  SNAPSHOT_BEFORE_LOCK LOCK_RELEASED_BEFORE_COMMIT; do
  breaks SYNCHRONOUS "$mutation"
done
for mutation in KEEP_DURABLE_POSITION FAILOVER_UNNOTICED; do
  breaks ASYNCHRONOUS "$mutation"
done
