-- What consumers have met of each stream of events: the tables inbox_positions and inbox_handled.

-- name: find_position
-- takes: consumer int, source text, stream text
-- gives: version int, event_id blob?, recorded_at time?
SELECT version, event_id, recorded_at FROM inbox_positions
WHERE consumer = :consumer AND source = :source AND stream = :stream;

-- name: upsert_position
-- takes: consumer int, source text, stream text, version int, event_id blob, recorded_at time
INSERT INTO inbox_positions (consumer, source, stream, version, event_id, recorded_at)
VALUES (:consumer, :source, :stream, :version, :event_id, :recorded_at)
ON CONFLICT (consumer, source, stream)
DO UPDATE SET version = excluded.version, event_id = excluded.event_id,
              recorded_at = excluded.recorded_at
WHERE inbox_positions.version < excluded.version;

-- name: has_handled
-- By an older consumer, which kept the id of each event.
-- takes: consumer int, event_id blob
-- gives: found int
SELECT 1 AS found FROM inbox_handled WHERE consumer = :consumer AND event_id = :event_id;

-- name: has_handled_any
-- takes: consumer int
-- gives: found bool
SELECT EXISTS (SELECT 1 FROM inbox_handled WHERE consumer = :consumer) AS found;
