-- Messages: pending (outbox_messages), parked, discarded, redelivered, and published ones
-- (batches).

-- name: insert_message
-- takes: partition int, sequence int, stream int
INSERT INTO outbox_messages (partition, sequence, stream)
VALUES (:partition, :sequence, :stream);

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
-- takes: sequence int, stream int, partition int, now time, attempts int, reason text, error text,
--        failure_class text?
INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, attempts, reason, error,
                              failure_class)
VALUES (:sequence, :stream, :partition, :now, :attempts, :reason, :error, :failure_class)
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

-- name: event_ids
-- The ids of existing events among these sequences, a JSON array.
-- takes: sequences text
-- gives: sequence int, event_id blob
SELECT e.sequence, e.event_id FROM json_each(:sequences) JOIN events AS e ON e.sequence = value;
-- engine: postgres
SELECT e.sequence, e.event_id FROM jsonb_array_elements_text(:sequences::jsonb) AS j(value)
JOIN events AS e ON e.sequence = j.value::bigint;

-- name: stream_number
-- takes: name text
-- gives: stream int
SELECT stream FROM streams WHERE name = :name;

-- name: has_publishable
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
               WHERE k.publishes) AS is_there;

-- name: delete_found_loss
-- The broker has it, so it needn't be resent as lost.
-- takes: partition int, sequence int
DELETE FROM outbox_redeliveries
WHERE stream = (SELECT stream FROM events WHERE sequence = :sequence)
  AND sequence = :sequence AND partition = :partition AND was_lost;

-- name: message_stream
-- takes: partition int, sequence int
-- gives: stream int
SELECT stream FROM outbox_messages WHERE partition = :partition AND sequence = :sequence;

-- name: redelivery_stream
-- takes: redelivery int
-- gives: stream int, kind text, was_lost bool
SELECT stream, kind, was_lost FROM outbox_redeliveries WHERE redelivery = :redelivery;

-- name: note_message
-- takes: partition int, sequence int, attempts int, error text
UPDATE outbox_messages SET attempts = :attempts, last_error = :error
WHERE partition = :partition AND sequence = :sequence;

-- name: note_redelivery
-- takes: redelivery int, attempts int, error text
UPDATE outbox_redeliveries SET attempts = :attempts, last_error = :error
WHERE redelivery = :redelivery;

-- name: insert_parked
-- takes: stream int, sequence int, partition int, now time, attempts int, reason text, error text,
--        was_lost bool, failure text?, failure_class text?
INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error,
                           was_lost, failure, failure_class)
VALUES (:stream, :sequence, :partition, :now, :attempts, :reason, :error, :was_lost, :failure,
        :failure_class);

-- name: insert_batch
-- takes: partition int, last_sequence int, redelivery int, first_sequence int, count int, now time,
--        first_broker int, last_broker int
INSERT INTO outbox_batches (partition, last_sequence, redelivery, first_sequence, count,
                            published_at, first_broker, last_broker)
VALUES (:partition, :last_sequence, :redelivery, :first_sequence, :count, :now, :first_broker,
        :last_broker)
ON CONFLICT DO NOTHING;
