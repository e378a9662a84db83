-- The projections' queries on the event store's tables.

-- name: event_kind_types
-- gives: type text
SELECT DISTINCT type FROM event_kinds;

-- name: recorded_at
-- takes: sequence int
-- gives: recorded_at time
SELECT recorded_at FROM events WHERE sequence = :sequence;

-- name: count_types
-- Categories, types and streams are JSON arrays; NULL for all.
-- takes: first int, last int, categories text?, types text?, streams text?, since time, until time
-- gives: type text, events int
SELECT k.type AS type, count(*) AS events
FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence BETWEEN :first AND :last
  AND (:categories IS NULL OR k.category IN (SELECT value FROM json_each(:categories)))
  AND (:types IS NULL OR k.type IN (SELECT value FROM json_each(:types)))
  AND (:streams IS NULL OR e.stream IN (SELECT s.stream FROM streams AS s
                                        WHERE s.name IN (SELECT value FROM json_each(:streams))))
  AND e.recorded_at BETWEEN :since AND :until
GROUP BY k.type;
-- engine: postgres
SELECT k.type AS type, count(*) AS events
FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence BETWEEN :first AND :last
  AND (:categories IS NULL OR :categories::jsonb ? k.category)
  AND (:types IS NULL OR :types::jsonb ? k.type)
  AND (:streams IS NULL
       OR e.stream IN (SELECT s.stream FROM streams AS s
                       WHERE s.name IN (SELECT jsonb_array_elements_text(:streams::jsonb))))
  AND e.recorded_at BETWEEN :since AND :until
GROUP BY k.type;
