-- The state of an event's message, and the messages in a state.

-- row: waiting
-- Redeliveries have no next attempt here.
-- gives: sequence int, stream int, partition int, attempts int, next_attempt_at time,
--        last_error text, redelivery int

-- row: set_aside
-- gives: sequence int, stream int, partition int, since time, attempts int, reason text, error text,
--        failure_class text?

-- name: find_event
-- takes: sequence int
-- gives: stream int, name text, version int, event_id blob, type text, publishes bool,
--        recorded_at time
SELECT e.stream, s.name, e.version, e.event_id, k.type, k.publishes, e.recorded_at
FROM events AS e
LEFT JOIN streams AS s ON s.stream = e.stream
LEFT JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence = :sequence;

-- name: event_facts
-- Facts about the events of these sequences, a JSON array.
-- takes: sequences text
-- gives: sequence int, stream int, name text, version int, event_id blob, type text, publishes bool,
--        recorded_at time
SELECT e.sequence, e.stream, s.name, e.version, e.event_id, k.type, k.publishes, e.recorded_at
FROM json_each(:sequences) JOIN events AS e ON e.sequence = value
LEFT JOIN streams AS s ON s.stream = e.stream
LEFT JOIN event_kinds AS k ON k.kind = e.kind;
-- engine: postgres
SELECT e.sequence, e.stream, s.name, e.version, e.event_id, k.type, k.publishes, e.recorded_at
FROM jsonb_array_elements_text(:sequences::jsonb) AS j(value)
JOIN events AS e ON e.sequence = j.value::bigint
LEFT JOIN streams AS s ON s.stream = e.stream
LEFT JOIN event_kinds AS k ON k.kind = e.kind;

-- name: event_types
-- The same, reduced to what filters need.
-- takes: sequences text
-- gives: sequence int, type text, recorded_at time
SELECT e.sequence, k.type, e.recorded_at
FROM json_each(:sequences) JOIN events AS e ON e.sequence = value
LEFT JOIN event_kinds AS k ON k.kind = e.kind;
-- engine: postgres
SELECT e.sequence, k.type, e.recorded_at
FROM jsonb_array_elements_text(:sequences::jsonb) AS j(value)
JOIN events AS e ON e.sequence = j.value::bigint
LEFT JOIN event_kinds AS k ON k.kind = e.kind;

-- name: find_waiting
-- Searches all partitions, because its own may be unknown or missing. CROSS JOIN fixes the order:
-- the other order would scan all pending messages.
-- takes: sequence int
-- gives: waiting
SELECT m.sequence, m.stream, m.partition, m.attempts, m.next_attempt_at, m.last_error,
       0 AS redelivery
FROM outbox_partitions AS p
CROSS JOIN outbox_messages AS m ON m.partition = p.partition AND m.sequence = :sequence;

-- name: list_waiting
-- The messages of these sequences, in no order, in one or all known partitions.
-- takes: first int, last int, partition int?, most int
-- gives: waiting
SELECT m.sequence, m.stream, m.partition, m.attempts, m.next_attempt_at, m.last_error,
       0 AS redelivery
FROM (SELECT partition FROM outbox_partitions WHERE :partition IS NULL
      UNION ALL SELECT :partition WHERE :partition IS NOT NULL) AS few
CROSS JOIN outbox_messages AS m
  ON m.partition = few.partition AND m.sequence BETWEEN :first AND :last
LIMIT :most;

-- name: list_retrying
-- takes: first int, last int, partition int?, most int
-- gives: waiting
SELECT m.sequence, m.stream, m.partition, m.attempts, m.next_attempt_at, m.last_error,
       0 AS redelivery
FROM (SELECT partition FROM outbox_partitions WHERE :partition IS NULL
      UNION ALL SELECT :partition WHERE :partition IS NOT NULL) AS few
CROSS JOIN outbox_messages AS m INDEXED BY outbox_messages_retrying
  ON m.partition = few.partition AND m.sequence BETWEEN :first AND :last AND m.attempts > 0
LIMIT :most;

-- name: list_redeliveries
-- takes: first int, last int, partition int?, most int
-- gives: waiting
SELECT r.sequence, r.stream, r.partition, r.attempts, 0 AS next_attempt_at, r.last_error,
       r.redelivery
FROM (SELECT partition FROM outbox_partitions WHERE :partition IS NULL
      UNION ALL SELECT :partition WHERE :partition IS NOT NULL) AS few
CROSS JOIN outbox_redeliveries AS r
  ON r.partition = few.partition AND r.sequence BETWEEN :first AND :last
LIMIT :most;

-- name: find_redelivery
-- Messages that were never published come first.
-- takes: stream int, sequence int
-- gives: redelivery int, kind text, partition int, attempts int, last_error text
SELECT redelivery, kind, partition, attempts, last_error FROM outbox_redeliveries
WHERE stream = :stream AND sequence = :sequence ORDER BY kind = 'republish', redelivery;

-- name: find_parked
-- takes: sequence int
-- gives: set_aside
SELECT sequence, stream, partition, parked_at AS since, attempts, reason, error,
       failure_class
FROM outbox_parked WHERE sequence = :sequence;

-- name: find_discarded
-- takes: sequence int
-- gives: set_aside
SELECT sequence, stream, partition, discarded_at AS since, attempts, reason, error,
       failure_class
FROM outbox_discarded WHERE sequence = :sequence;

-- name: list_parked
-- takes: first int, last int, most int
-- gives: set_aside
SELECT sequence, stream, partition, parked_at AS since, attempts, reason, error,
       failure_class
FROM outbox_parked WHERE sequence BETWEEN :first AND :last LIMIT :most;

-- name: list_discarded
-- takes: first int, last int, most int
-- gives: set_aside
SELECT sequence, stream, partition, discarded_at AS since, attempts, reason, error,
       failure_class
FROM outbox_discarded WHERE sequence BETWEEN :first AND :last LIMIT :most;

-- name: publishable_events
-- takes: first int, last int, most int
-- gives: sequence int, type text
SELECT e.sequence, k.type FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence BETWEEN :first AND :last AND k.publishes
ORDER BY e.sequence LIMIT :most;

-- name: last_published
-- gives: sequence int
SELECT max(max(p.published_through,
               coalesce((SELECT b.last_sequence FROM outbox_batches AS b
                         WHERE b.partition = p.partition ORDER BY b.last_sequence DESC LIMIT 1),
                        0))) AS sequence
FROM outbox_partitions AS p;

-- name: progress
-- The end of what is published, and of what the present owner, if any, has in flight.
-- takes: partition int, now time
-- gives: through int, flight_through int
SELECT max(p.published_through,
           coalesce((SELECT b.last_sequence FROM outbox_batches AS b
                     WHERE b.partition = :partition AND b.redelivery = 0
                     ORDER BY b.last_sequence DESC LIMIT 1), 0)) AS through,
       CASE WHEN p.owner IS NOT NULL AND p.lease_until > :now AND p.flight_count > 0
             AND p.next_attempt_at <= :now
            THEN p.flight_through ELSE 0 END AS flight_through
FROM outbox_partitions AS p WHERE p.partition = :partition;

-- name: batch_of
-- The partition's first run that ends at or after the sequence. It contains the sequence if it
-- begins early enough.
-- takes: partition int, sequence int
-- gives: first_sequence int, last_sequence int, count int, published_at time, first_broker int,
--        last_broker int
SELECT first_sequence, last_sequence, count, published_at, first_broker, last_broker
FROM outbox_batches
WHERE partition = :partition AND last_sequence >= :sequence AND redelivery = 0
ORDER BY last_sequence LIMIT 1;

-- name: redelivered_batch_of
-- Where it was redelivered, perhaps under another generation, or where it was before its import,
-- with the redelivery -1. CROSS JOIN fixes the order: the other order would scan all batches.
-- takes: sequence int
-- gives: partition int, redelivery int, published_at time, first_broker int, last_broker int
SELECT b.partition AS partition, b.redelivery AS redelivery, b.published_at AS published_at,
       b.first_broker AS first_broker, b.last_broker AS last_broker
FROM outbox_partitions AS p
CROSS JOIN outbox_batches AS b
  ON b.partition = p.partition AND b.last_sequence = :sequence AND b.redelivery <> 0;

-- name: set_apart
-- Sequences of a range that have a message or were redelivered or imported. All others are
-- published or missing.
-- takes: first int, last int
-- gives: sequence int
SELECT m.sequence FROM outbox_partitions AS p
CROSS JOIN outbox_messages AS m
  ON m.partition = p.partition AND m.sequence BETWEEN :first AND :last
UNION ALL SELECT sequence FROM outbox_parked WHERE sequence BETWEEN :first AND :last
UNION ALL SELECT sequence FROM outbox_discarded WHERE sequence BETWEEN :first AND :last
UNION ALL SELECT sequence FROM outbox_redeliveries WHERE sequence BETWEEN :first AND :last
UNION ALL SELECT b.last_sequence FROM outbox_partitions AS p
CROSS JOIN outbox_batches AS b
  ON b.partition = p.partition AND b.last_sequence BETWEEN :first AND :last AND b.redelivery <> 0;

-- name: oldest_batch
-- takes: partition int
-- gives: first_sequence int
SELECT first_sequence FROM outbox_batches WHERE partition = :partition AND redelivery = 0
ORDER BY last_sequence LIMIT 1;
