-- Finds the events that carry an id, as their own, their correlation or their cause: by the index
-- of links, and in ranges of events without links.

-- row: carrier
-- gives: sequence int, recorded_at time, event_id blob, correlation_id text, causation_id blob

-- name: carriers
-- takes: from int, to int
-- gives: carrier
SELECT sequence, recorded_at, event_id, correlation_id, causation_id
FROM events WHERE sequence BETWEEN :from AND :to ORDER BY sequence;

-- name: linked
-- Without a join on PostgreSQL, which may read all events before these.
-- takes: link int, from int, to int, limit int
-- gives: carrier
SELECT e.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l CROSS JOIN events AS e ON e.sequence = l.sequence
WHERE l.link = :link AND l.sequence BETWEEN :from AND :to
ORDER BY l.sequence LIMIT :limit;
-- engine: postgres
SELECT e.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l,
     LATERAL (SELECT * FROM events AS f WHERE f.sequence = l.sequence LIMIT 1) AS e
WHERE l.link = :link AND l.sequence BETWEEN :from AND :to
ORDER BY l.sequence LIMIT :limit;

-- name: linked_backward
-- takes: link int, from int, to int, limit int
-- gives: carrier
SELECT e.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l CROSS JOIN events AS e ON e.sequence = l.sequence
WHERE l.link = :link AND l.sequence BETWEEN :from AND :to
ORDER BY l.sequence DESC LIMIT :limit;
-- engine: postgres
SELECT e.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l,
     LATERAL (SELECT * FROM events AS f WHERE f.sequence = l.sequence LIMIT 1) AS e
WHERE l.link = :link AND l.sequence BETWEEN :from AND :to
ORDER BY l.sequence DESC LIMIT :limit;

-- name: find_event
-- takes: from int, to int, id blob
-- gives: sequence int
SELECT sequence FROM events WHERE sequence BETWEEN :from AND :to AND event_id = :id;
-- engine: postgres
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND event_id = encode(:id, 'hex')::uuid;

-- name: effects_of
-- takes: from int, to int, cause blob
-- gives: sequence int
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND causation_id = :cause ORDER BY sequence;
-- engine: postgres
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND causation_id = encode(:cause, 'hex')::uuid
ORDER BY sequence;

-- name: correlated
-- takes: from int, to int, correlation text
-- gives: sequence int
SELECT sequence FROM events
WHERE sequence BETWEEN :from AND :to AND correlation_id = :correlation ORDER BY sequence;

-- name: caused
-- takes: from int, to int
-- gives: carrier
SELECT sequence, recorded_at, event_id, correlation_id, causation_id
FROM events WHERE sequence BETWEEN :from AND :to AND causation_id IS NOT NULL ORDER BY sequence;

-- name: time_of
-- The time of the first event from a sequence on.
-- takes: sequence int
-- gives: recorded_at time
SELECT recorded_at FROM events WHERE sequence >= :sequence ORDER BY sequence LIMIT 1;

-- name: has_links
-- A database that was opened read-only may be older.
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'event_links_through')
       AS is_there;
-- engine: postgres
SELECT to_regclass('event_links_through') IS NOT NULL AS is_there;

-- name: links_through
-- gives: sequence int
SELECT sequence FROM event_links_through;

-- name: insert_links
-- `links` is a JSON array of pairs.
-- takes: links text
INSERT INTO event_links (link, sequence)
SELECT value ->> 0, value ->> 1 FROM json_each(:links) WHERE true
ON CONFLICT DO NOTHING;
-- engine: postgres
INSERT INTO event_links (link, sequence)
SELECT (j.pair ->> 0)::bigint, (j.pair ->> 1)::bigint
FROM jsonb_array_elements(:links::jsonb) AS j(pair)
ON CONFLICT DO NOTHING;

-- name: set_links_through
-- takes: sequence int
UPDATE event_links_through SET sequence = :sequence;

-- name: delete_links
-- takes: most int
DELETE FROM event_links
WHERE (link, sequence) IN (SELECT l.link, l.sequence FROM event_links AS l
                           ORDER BY l.link, l.sequence LIMIT :most);

-- name: inspect_missing_links
-- Pairs of a JSON array that the index lacks.
-- takes: links text
-- gives: sequence int
SELECT value ->> 1 AS sequence FROM json_each(:links)
WHERE NOT EXISTS (SELECT 1 FROM event_links AS l
                  WHERE l.link = value ->> 0 AND l.sequence = value ->> 1);
-- engine: postgres
SELECT (j.pair ->> 1)::bigint AS sequence FROM jsonb_array_elements(:links::jsonb) AS j(pair)
WHERE NOT EXISTS (SELECT 1 FROM event_links AS l
                  WHERE l.link = (j.pair ->> 0)::bigint AND l.sequence = (j.pair ->> 1)::bigint);

-- name: inspect_links
-- Each link with its event, if there is one.
-- takes: link int, sequence int, limit int
-- gives: link int, sequence int, recorded_at time, event_id blob?, correlation_id text,
--        causation_id blob
SELECT l.link, l.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l LEFT JOIN events AS e NOT INDEXED ON e.sequence = l.sequence
WHERE (l.link, l.sequence) > (:link, :sequence)
ORDER BY l.link, l.sequence LIMIT :limit;
-- engine: postgres
SELECT l.link, l.sequence, e.recorded_at, e.event_id, e.correlation_id, e.causation_id
FROM event_links AS l LEFT JOIN LATERAL
     (SELECT * FROM events AS f WHERE f.sequence = l.sequence LIMIT 1) AS e ON true
WHERE (l.link, l.sequence) > (:link, :sequence)
ORDER BY l.link, l.sequence LIMIT :limit;

-- name: inspect_link_count
-- gives: entries int
SELECT count(*) AS entries FROM event_links;
