-- Consumers: the table inbox_consumers.

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

-- name: list_consumers
-- gives: consumer text, gaps int
SELECT c.name AS consumer,
       (SELECT count(*) FROM inbox_gaps AS g
        WHERE g.consumer = c.consumer AND g.missing IS NOT NULL) AS gaps
FROM inbox_consumers AS c ORDER BY c.name;
