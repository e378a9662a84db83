-- The status of an outbox: its partitions and workers.

-- name: status_of_partitions
-- One row per partition. All counts are maintained except that of pending messages, which are
-- counted up to `most`.
-- takes: most int
-- gives: partition int, owner text?, epoch int, lease_until time, published_through int,
--        broker_sequence int, flight_count int, published int, redeliveries int, parked int,
--        discarded int, attempts int, next_attempt_at time, last_error text, stopped text,
--        stopped_detail text, pending int, oldest int?, oldest_recorded_at time?, retrying int,
--        moved_at time, redelivery_requested_at time?, stopped_at time?, backing_since time?,
--        uncompared_since time?, broker_first int, failure_class text?
SELECT p.partition, p.owner, p.epoch, p.lease_until, p.published_through, p.broker_sequence,
       p.flight_count, p.published, p.redeliveries, p.parked, p.discarded, p.attempts,
       p.next_attempt_at, p.last_error, p.stopped, p.stopped_detail,
       (SELECT count(*) FROM (SELECT 1 FROM outbox_messages AS m
                              WHERE m.partition = p.partition LIMIT :most) AS few) AS pending,
       f.sequence AS oldest,
       (SELECT e.recorded_at FROM events AS e WHERE e.sequence = f.sequence)
         AS oldest_recorded_at,
       (SELECT count(*) FROM outbox_messages AS m INDEXED BY outbox_messages_retrying
        WHERE m.partition = p.partition AND m.attempts > 0) AS retrying,
       p.moved_at,
       (SELECT r.requested_at FROM outbox_redeliveries AS r
        WHERE r.partition = p.partition ORDER BY r.redelivery LIMIT 1)
         AS redelivery_requested_at,
       p.stopped_at, p.backing_since, p.uncompared_since, p.broker_first, p.failure_class
FROM outbox_partitions AS p
LEFT JOIN outbox_messages AS f
  ON f.partition = p.partition
 AND f.sequence = (SELECT m.sequence FROM outbox_messages AS m
                   WHERE m.partition = p.partition ORDER BY m.sequence LIMIT 1)
WHERE p.retired_at IS NULL OR p.parked > 0
ORDER BY p.partition;
-- engine: postgres
SELECT p.partition, p.owner, p.epoch, p.lease_until, p.published_through, p.broker_sequence,
       p.flight_count, p.published, p.redeliveries, p.parked, p.discarded, p.attempts,
       p.next_attempt_at, p.last_error, p.stopped, p.stopped_detail,
       (SELECT count(*) FROM (SELECT 1 FROM outbox_messages AS m
                              WHERE m.partition = p.partition AND m.sequence > p.drained_through
                              LIMIT :most) AS few) AS pending,
       f.sequence AS oldest,
       (SELECT e.recorded_at FROM events AS e WHERE e.sequence = f.sequence)
         AS oldest_recorded_at,
       (SELECT count(*) FROM outbox_messages AS m INDEXED BY outbox_messages_retrying
        WHERE m.partition = p.partition AND m.attempts > 0) AS retrying,
       p.moved_at,
       (SELECT r.requested_at FROM outbox_redeliveries AS r
        WHERE r.partition = p.partition ORDER BY r.redelivery LIMIT 1)
         AS redelivery_requested_at,
       p.stopped_at, p.backing_since, p.uncompared_since, p.broker_first, p.failure_class
FROM outbox_partitions AS p
LEFT JOIN outbox_messages AS f
  ON f.partition = p.partition
 AND f.sequence = (SELECT m.sequence FROM outbox_messages AS m
                   WHERE m.partition = p.partition AND m.sequence > p.drained_through
                   ORDER BY m.sequence LIMIT 1)
WHERE p.retired_at IS NULL OR p.parked > 0
ORDER BY p.partition;

-- name: totals
-- Includes retired partitions.
-- gives: published int, discarded int, failures int, takeovers int, last_parked_at time?
SELECT CAST(coalesce(sum(published), 0) AS bigint) AS published,
       CAST(coalesce(sum(discarded), 0) AS bigint) AS discarded,
       CAST(coalesce(sum(failures), 0) AS bigint) AS failures,
       CAST(coalesce(sum(takeovers), 0) AS bigint) AS takeovers,
       (SELECT p.parked_at FROM outbox_parked AS p ORDER BY p.sequence DESC LIMIT 1)
         AS last_parked_at
FROM outbox_partitions;

-- name: count_waiting
-- takes: partition int
-- gives: count int
SELECT count(*) AS count FROM outbox_messages WHERE partition = :partition;

-- name: status_of_workers
-- gives: worker text, host text, pid int, started_at time, heartbeat_until time, heartbeat_ttl int,
--        partitions int, broker text, is_cut_off bool, presence int, broker_since time
SELECT w.worker, w.host, w.pid, w.started_at, w.heartbeat_until, w.heartbeat_ttl,
       (SELECT count(*) FROM outbox_partitions AS p WHERE p.owner = w.worker) AS partitions,
       w.broker, w.is_cut_off, w.presence, w.broker_since
FROM outbox_workers AS w ORDER BY w.worker;
