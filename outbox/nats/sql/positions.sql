-- What consumers have met of each stream of events: the table inbox_positions.

-- name: find_position
-- Version 0 if none was met. `parked`: whether a parked message holds the stream up.
-- takes: consumer int, source text, stream text
-- gives: version int, event_id blob?, recorded_at time?, parked bool
SELECT coalesce(p.version, 0) AS version, p.event_id, p.recorded_at,
       EXISTS (SELECT 1 FROM inbox_parked AS w
               WHERE w.consumer = :consumer AND w.source = :source AND w.stream = :stream) AS parked
FROM inbox_consumers AS c LEFT JOIN inbox_positions AS p
  ON p.consumer = c.consumer AND p.source = :source AND p.stream = :stream
WHERE c.consumer = :consumer;

-- name: upsert_position
-- takes: consumer int, source text, stream text, version int, event_id blob, recorded_at time
INSERT INTO inbox_positions (consumer, source, stream, version, event_id, recorded_at)
VALUES (:consumer, :source, :stream, :version, :event_id, :recorded_at)
ON CONFLICT (consumer, source, stream)
DO UPDATE SET version = excluded.version, event_id = excluded.event_id,
              recorded_at = excluded.recorded_at
WHERE inbox_positions.version < excluded.version;
