-- What consumers have handled: the tables inbox_handled and inbox_positions.

-- name: insert_handled
-- takes: consumer int, event_id blob, handled_at time
INSERT INTO inbox_handled (consumer, event_id, handled_at, knows_held)
VALUES (:consumer, :event_id, :handled_at, 1)
ON CONFLICT DO NOTHING;
-- engine: postgres
INSERT INTO inbox_handled (consumer, event_id, handled_at)
VALUES (:consumer, :event_id, :handled_at)
ON CONFLICT DO NOTHING;

-- name: has_handled
-- takes: consumer int, event_id blob
-- gives: found int
SELECT 1 AS found FROM inbox_handled WHERE consumer = :consumer AND event_id = :event_id;

-- name: purge_handled
-- What was handled long before the last: after a long rest nothing is forgotten at once.
-- takes: consumer int, now time, retention int, most int
DELETE FROM inbox_handled WHERE (consumer, event_id) IN (
  SELECT consumer, event_id FROM inbox_handled
  WHERE consumer = :consumer
    AND handled_at < min(:now, (SELECT max(handled_at) FROM inbox_handled
                                WHERE consumer = :consumer)) - :retention
  ORDER BY handled_at LIMIT :most);

-- name: find_position
-- takes: consumer int, source text, stream text
-- gives: version int
SELECT version FROM inbox_positions
WHERE consumer = :consumer AND source = :source AND stream = :stream;

-- name: upsert_position
-- takes: consumer int, source text, stream text, version int
INSERT INTO inbox_positions (consumer, source, stream, version)
VALUES (:consumer, :source, :stream, :version)
ON CONFLICT (consumer, source, stream)
DO UPDATE SET version = max(inbox_positions.version, excluded.version);
