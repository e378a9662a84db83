-- How the relay holds a partition, and what it records. A lease is an owner and an epoch.

-- name: standing
-- takes: partition int
-- gives: owner text?, epoch int, lease_until time, lease_ttl int, published_through int,
--        broker_sequence int, broker_id text, flight_count int, flight_through int, attempts int,
--        next_attempt_at time, adopted bool
SELECT owner, epoch, lease_until, lease_ttl, published_through,
       broker_sequence, broker_id, flight_count, flight_through, attempts,
       next_attempt_at, adopted
FROM outbox_partitions WHERE partition = :partition;

-- name: acquire
-- If the lease hasn't changed since it was found free, and the partition is stopped for this
-- reason, or isn't stopped if the reason is empty.
-- takes: partition int, found_epoch int, found_until time, worker text, until time, ttl int,
--        stopped text
UPDATE outbox_partitions
SET takeovers = takeovers + CASE WHEN owner <> :worker THEN 1 ELSE 0 END,
    owner = :worker, epoch = epoch + 1, lease_until = :until, lease_ttl = :ttl
WHERE partition = :partition AND coalesce(stopped, '') = :stopped
  AND epoch = :found_epoch AND lease_until = :found_until;

-- name: renew
-- takes: partition int, owner text, epoch int, now time, until time
UPDATE outbox_partitions SET lease_until = :until
WHERE partition = :partition AND owner = :owner AND epoch = :epoch AND lease_until > :now;

-- name: release
-- takes: partition int, owner text, epoch int
UPDATE outbox_partitions SET owner = NULL, lease_until = 0
WHERE partition = :partition AND owner = :owner AND epoch = :epoch;

-- name: advance
-- takes: partition int, owner text, epoch int, through int, broker_sequence int?, broker_id text?,
--        flight_count int, flight_through int, removed int, published int, failed int, now time
UPDATE outbox_partitions
SET published_through = max(published_through, :through),
    moved_at = CASE WHEN :published > 0 OR flight_count = 0 THEN :now ELSE moved_at END,
    broker_sequence = coalesce(:broker_sequence, broker_sequence),
    broker_id = coalesce(:broker_id, broker_id),
    adopted = CASE WHEN :broker_sequence IS NULL THEN adopted ELSE 0 END,
    flight_count = :flight_count, flight_through = :flight_through,
    removed = removed + :removed, published = published + :published,
    failures = failures + :failed
WHERE partition = :partition AND owner = :owner AND epoch = :epoch;

-- name: note_partition
-- takes: partition int, owner text, epoch int, attempts int, next_attempt_at time, error text?,
--        failure_class text?, now time
UPDATE outbox_partitions
SET backing_since = CASE WHEN :attempts = 0 THEN NULL
                         WHEN attempts > 0 THEN backing_since ELSE :now END,
    failures = failures + CASE WHEN :attempts > attempts THEN 1 ELSE 0 END,
    attempts = :attempts, next_attempt_at = :next_attempt_at, last_error = :error,
    failure_class = :failure_class
WHERE partition = :partition AND owner = :owner AND epoch = :epoch;

-- name: stop
-- takes: partition int, owner text, epoch int, reason text, detail text, now time
UPDATE outbox_partitions SET stopped = :reason, stopped_detail = :detail, stopped_at = :now
WHERE partition = :partition AND owner = :owner AND epoch = :epoch;

-- name: continue_lost
-- takes: partition int, owner text, epoch int
UPDATE outbox_partitions SET stopped = NULL, stopped_detail = NULL, stopped_at = NULL
WHERE partition = :partition AND owner = :owner AND epoch = :epoch AND stopped = 'broker_lost';

-- name: stop_shared
-- takes: partition int, reason text, detail text, now time
UPDATE outbox_partitions SET stopped = :reason, stopped_detail = :detail, stopped_at = :now
WHERE partition = :partition AND stopped IS NULL;
