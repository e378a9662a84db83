-- Messages: pending (outbox_messages), parked, discarded, sent again, and published ones (batches).

-- name: insert_message
-- takes: partition int, sequence int, stream int, position int
INSERT INTO outbox_messages (partition, sequence, stream, position)
VALUES (:partition, :sequence, :stream, :position);

-- name: delete_messages
-- takes: partition int, first int, last int
DELETE FROM outbox_messages WHERE partition = :partition AND sequence BETWEEN :first AND :last;

-- name: delete_parked
-- takes: sequence int
DELETE FROM outbox_parked WHERE sequence = :sequence;

-- name: delete_redelivery
-- takes: redelivery int
DELETE FROM outbox_redeliveries WHERE redelivery = :redelivery;

-- name: insert_discarded
-- takes: sequence int, stream int, partition int, now time, reason text, error text
INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, reason, error)
VALUES (:sequence, :stream, :partition, :now, :reason, :error)
ON CONFLICT DO NOTHING;

-- name: insert_redelivery
-- takes: partition int, generation int, sequence int, stream int, kind text, now time, was_lost bool
INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, requested_at,
                                 was_lost)
VALUES (:partition, :generation, :sequence, :stream, :kind, :now, :was_lost);

-- name: event_id
-- takes: sequence int
-- gives: event_id blob
SELECT event_id FROM events WHERE sequence = :sequence;

-- name: stream_number
-- takes: name text
-- gives: stream int
SELECT stream FROM streams WHERE name = :name;

-- name: delete_claimed
-- takes: partition int, first int, last int, claim text
DELETE FROM outbox_messages
WHERE partition = :partition AND sequence BETWEEN :first AND :last AND claim = :claim;

-- name: has_publishable
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
               WHERE k.publishes = 1) AS is_there;
