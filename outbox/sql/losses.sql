-- What an operator says of messages that the broker lost, and of events that only the broker has.

-- name: adopt
-- takes: partition int, broker_sequence int?, anew bool, now time
UPDATE outbox_partitions
SET uncompared_since = CASE WHEN :anew AND stopped <> 'poison'
                            THEN coalesce(uncompared_since, :now) ELSE uncompared_since END,
    stopped = NULL, stopped_detail = NULL, stopped_at = NULL, backing_since = NULL, attempts = 0,
    next_attempt_at = 0, last_error = NULL, failure_class = NULL,
    -- Without a fence there is nothing to look at.
    adopted = CASE WHEN :anew AND (SELECT s.fence FROM outbox_settings AS s WHERE s.one = 1) <> 'none'
                   THEN 1 ELSE adopted END,
    broker_id = CASE WHEN :broker_sequence IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(:broker_sequence, broker_sequence)
WHERE partition = :partition;

-- name: note_compared
-- All of it was compared, and what is missing is to be sent again. `first`: the first message of its
-- stream, if there is one.
-- takes: partition int, first int?
UPDATE outbox_partitions
SET uncompared_since = NULL, broker_first = coalesce(:first, broker_sequence + 1)
WHERE partition = :partition;

-- name: uncertain_partitions
-- They are stopped as the broker lost messages, and may have them again, or are adopted, and nobody
-- has looked at the broker since.
-- gives: partition int, is_stopped bool
SELECT partition, stopped IS NOT NULL AS is_stopped FROM outbox_partitions
WHERE stopped = 'broker_lost' OR (stopped IS NULL AND adopted <> 0)
ORDER BY partition;

-- name: published_partitions
-- Retired ones too: what they published stands where it stood. One that published may count nothing
-- any more, after losses; and one that knows of nothing yet, in a restored backup, may have met it
-- at the broker.
-- gives: partition int
SELECT partition FROM outbox_partitions
WHERE published > 0 OR published_through > 0 OR broker_sequence > 0
   OR stopped IN ('store_went_back', 'foreign_writer', 'unreadable')
ORDER BY partition;

-- name: uncount_published
-- A partition that sent messages of others again may have counted it instead.
-- takes: partition int
UPDATE outbox_partitions SET published = published - 1
WHERE partition =
  coalesce((SELECT p.partition FROM outbox_partitions AS p
            WHERE p.partition = :partition AND p.published > 0),
           (SELECT p.partition FROM outbox_partitions AS p WHERE p.published > 0 LIMIT 1));

-- name: imported_messages
-- The events of a partition that were imported from the broker, and where they stand there.
-- takes: partition int
-- gives: last_sequence int, first_broker int
SELECT last_sequence, first_broker FROM outbox_batches
WHERE partition = :partition AND redelivery < 0;

-- name: count_imported
-- takes: partition int, count int
UPDATE outbox_partitions SET published = published + :count WHERE partition = :partition;

-- name: stream_end
-- takes: name text
-- gives: version int, recorded_at time
SELECT e.version, e.recorded_at FROM streams AS s JOIN events AS e ON e.stream = s.stream
WHERE s.name = :name ORDER BY e.version DESC LIMIT 1;

-- name: id_of_version
-- takes: name text, version int
-- gives: event_id blob
SELECT e.event_id FROM streams AS s JOIN events AS e ON e.stream = s.stream
WHERE s.name = :name AND e.version = :version;

-- name: tagged_types
-- gives: type text
SELECT type FROM tag_types ORDER BY type;

-- name: other_participants
-- What takes part in each append, beside the outbox. A row of a migration takes no part.
-- gives: name text
SELECT name FROM stela_participants WHERE name <> 'outbox' AND name NOT LIKE 'schema:%'
ORDER BY name;
