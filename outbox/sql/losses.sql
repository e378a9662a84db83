-- Operators' decisions about messages that the broker lost, and about events that only it has.

-- name: adopt
-- takes: partition int, broker_sequence int?, anew bool, now time
UPDATE outbox_partitions
SET uncompared_since = CASE WHEN :anew AND stopped <> 'poison'
                            THEN coalesce(uncompared_since, :now) ELSE uncompared_since END,
    stopped = NULL, stopped_detail = NULL, stopped_at = NULL, backing_since = NULL, attempts = 0,
    next_attempt_at = 0, last_error = NULL, failure_class = NULL,
    -- Without a fence there is nothing to compare with the broker.
    adopted = CASE WHEN :anew AND (SELECT s.fence FROM outbox_settings AS s WHERE s.one = 1) <> 'none'
                   THEN 1 ELSE adopted END,
    broker_id = CASE WHEN :broker_sequence IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(:broker_sequence, broker_sequence)
WHERE partition = :partition;

-- name: note_compared
-- Everything was compared, and missing messages will be sent again. `first`: the first message of
-- its stream, if there is one.
-- takes: partition int, first int?
UPDATE outbox_partitions
SET uncompared_since = NULL, broker_first = coalesce(:first, broker_sequence + 1)
WHERE partition = :partition;

-- name: uncertain_partitions
-- Partitions that are stopped because the broker lost messages, which may reappear, or are adopted
-- and not yet compared with the broker.
-- gives: partition int, is_stopped bool
SELECT partition, stopped IS NOT NULL AS is_stopped FROM outbox_partitions
WHERE stopped = 'broker_lost' OR (stopped IS NULL AND adopted <> 0)
ORDER BY partition;

-- name: published_partitions
-- Includes retired partitions, whose messages are still where they were. A partition that has
-- published may count nothing after losses. In a restored backup, one that knows nothing may have
-- found its messages at the broker.
-- gives: partition int
SELECT partition FROM outbox_partitions
WHERE published > 0 OR published_through > 0 OR broker_sequence > 0
   OR stopped IN ('store_went_back', 'foreign_writer', 'unreadable')
ORDER BY partition;

-- name: uncount_published
-- Another partition may have counted it, by resending this one's messages.
-- takes: partition int
UPDATE outbox_partitions SET published = published - 1
WHERE partition =
  coalesce((SELECT p.partition FROM outbox_partitions AS p
            WHERE p.partition = :partition AND p.published > 0),
           (SELECT p.partition FROM outbox_partitions AS p WHERE p.published > 0 LIMIT 1));

-- name: imported_messages
-- A partition's events that were imported from the broker, and their places there.
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
-- Participants of appends besides the outbox, and besides a tenant's mark, which needs to be told
-- nothing. Rows of migrations aren't participants.
-- gives: name text, detail text
SELECT name, detail FROM stela_participants
WHERE name NOT IN ('outbox', 'tenant') AND name NOT LIKE 'schema:%'
ORDER BY name;
