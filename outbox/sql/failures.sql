-- Parked messages grouped by failure.

-- name: without_failure
-- takes: most int
-- gives: sequence int, reason text, type text, error text
SELECT p.sequence AS sequence, p.reason AS reason, coalesce(k.type, '') AS type, p.error AS error
FROM outbox_parked AS p
LEFT JOIN events AS e ON e.sequence = p.sequence
LEFT JOIN event_kinds AS k ON k.kind = e.kind
WHERE p.failure IS NULL AND p.reason <> 'behind' LIMIT :most;

-- name: set_failure
-- takes: sequence int, failure text?
UPDATE outbox_parked SET failure = :failure WHERE sequence = :sequence;

-- name: failure_groups
-- Counts each blocked stream once. NULL: not grouped yet.
-- gives: failure text?, streams int, first_at time, last_at time, sample int
SELECT failure, count(*) AS streams, min(parked_at) AS first_at, max(parked_at) AS last_at,
       min(sequence) AS sample
FROM outbox_parked WHERE reason <> 'behind' GROUP BY failure ORDER BY failure;

-- name: type_of_event
-- takes: sequence int
-- gives: type text
SELECT k.type AS type FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence = :sequence;
