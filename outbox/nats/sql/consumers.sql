-- Consumers, and what an operator sees of each: the table inbox_consumers.

-- name: has_inbox
-- gives: present bool
SELECT EXISTS (SELECT 1 FROM sqlite_schema
               WHERE type = 'table' AND name = 'inbox_consumers') AS present;
-- engine: postgres
SELECT to_regclass('inbox_consumers') IS NOT NULL AS present;

-- name: insert_consumer
-- takes: name text, created_at time
INSERT INTO inbox_consumers (name, created_at) VALUES (:name, :created_at) ON CONFLICT DO NOTHING;

-- name: find_consumer
-- takes: name text
-- gives: consumer int
SELECT consumer FROM inbox_consumers WHERE name = :name;

-- name: find_forgotten
-- takes: consumer int
-- gives: forgotten_through time
SELECT forgotten_through FROM inbox_consumers WHERE consumer = :consumer;

-- name: count_inbox
-- gives: consumer text, held_streams int, held_messages int, held_since time?, dead_letters int,
--        gaps int
SELECT c.name AS consumer,
       (SELECT count(*) FROM inbox_held AS h
        WHERE h.consumer = c.consumer AND h.due_at IS NOT NULL) AS held_streams,
       (SELECT count(*) FROM inbox_held AS h WHERE h.consumer = c.consumer) AS held_messages,
       (SELECT min(h.held_at) FROM inbox_held AS h
        WHERE h.consumer = c.consumer AND h.due_at IS NOT NULL) AS held_since,
       (SELECT count(*) FROM inbox_dead_letters AS d
        WHERE d.consumer = c.consumer) AS dead_letters,
       (SELECT count(*) FROM inbox_gaps AS g
        WHERE g.consumer = c.consumer AND g.missing IS NOT NULL) AS gaps
FROM inbox_consumers AS c ORDER BY c.name;
