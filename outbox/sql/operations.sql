-- Operators' requests: retries, discards, retired partitions.

-- name: stream_text
-- takes: stream int
-- gives: name text
SELECT name FROM streams WHERE stream = :stream;

-- name: parked_streams
-- The streams with parked messages, one after the other. A type, error or failure selects by the
-- stream's first parked message.
-- takes: after int, type text?, error text?, failure text?
-- gives: stream int
SELECT p.stream FROM outbox_parked AS p
WHERE p.stream > :after
  AND ((:type IS NULL AND :error IS NULL AND :failure IS NULL)
       OR NOT EXISTS (SELECT 1 FROM outbox_parked AS earlier
                      WHERE earlier.stream = p.stream AND earlier.sequence < p.sequence))
  AND (:error IS NULL OR instr(lower(p.error), lower(:error)) > 0)
  AND (:failure IS NULL OR (p.failure = :failure AND p.reason <> 'behind'))
  AND (:type IS NULL
       OR EXISTS (SELECT 1 FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
                  WHERE e.sequence = p.sequence AND k.type = :type))
ORDER BY p.stream LIMIT 1;

-- name: parked_prefix
-- takes: stream int, through int
-- gives: sequence int, was_lost bool
SELECT sequence, was_lost FROM outbox_parked
WHERE stream = :stream AND sequence <= :through ORDER BY sequence;

-- name: parked_head
-- The first parked message of a stream.
-- takes: stream int
-- gives: sequence int, parked_at time, error text
SELECT sequence, parked_at, error FROM outbox_parked
WHERE stream = :stream ORDER BY sequence LIMIT 1;

-- name: parked_after
-- takes: stream int, after int, most int
-- gives: sequence int, partition int, reason text, was_lost bool
SELECT sequence, partition, reason, was_lost FROM outbox_parked
WHERE stream = :stream AND sequence > :after ORDER BY sequence LIMIT :most;

-- name: park_behind
-- takes: stream int, through int
UPDATE outbox_parked SET reason = 'behind'
WHERE stream = :stream AND sequence <= :through AND reason <> 'behind';

-- name: has_redeliveries
-- Whether the stream has more than `most` redeliveries of unpublished messages, from `first` on.
-- takes: stream int, first int, most int
-- gives: has_more bool
SELECT EXISTS (SELECT 1 FROM outbox_redeliveries
               WHERE stream = :stream AND sequence >= :first AND kind = 'retry'
               LIMIT 1 OFFSET :most) AS has_more;

-- name: later_redeliveries
-- The stream's redeliveries of unpublished messages, from `first` on.
-- takes: stream int, first int
-- gives: redelivery int, sequence int, was_lost bool
SELECT redelivery, sequence, was_lost FROM outbox_redeliveries
WHERE stream = :stream AND sequence >= :first AND kind = 'retry';

-- name: messages_of_partition
-- takes: partition int, most int
-- gives: sequence int, stream int
SELECT sequence, stream FROM outbox_messages WHERE partition = :partition
ORDER BY sequence LIMIT :most;

-- name: count_removed
-- takes: partition int
UPDATE outbox_partitions SET removed = removed + 1 WHERE partition = :partition;

-- name: try_now
-- A worker that is backing off sees the 0 and tries at once; a new owner does so anyway.
-- takes: partition int
UPDATE outbox_partitions SET next_attempt_at = 0
WHERE partition = :partition AND attempts > 0 AND stopped IS NULL;

-- name: retire
-- Unless it has pending or parked messages, or an owner.
-- takes: partition int, now time
UPDATE outbox_partitions SET retired_at = :now, owner = NULL, lease_until = 0
WHERE partition = :partition AND retired_at IS NULL AND stopped IS NULL
  AND (owner IS NULL OR lease_until <= :now) AND redeliveries = 0 AND parked = 0
  AND NOT EXISTS (SELECT 1 FROM outbox_messages AS m WHERE m.partition = :partition);
