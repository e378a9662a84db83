-- Parked messages grouped by failure.

-- name: failure_groups
-- Each stream that is held up counts once.
-- gives: failure text, streams int, first_at time, last_at time, sample int
SELECT failure, count(*) AS streams, min(parked_at) AS first_at, max(parked_at) AS last_at,
       min(sequence) AS sample
FROM outbox_parked WHERE reason <> 'behind' GROUP BY failure ORDER BY failure;

-- name: type_of_event
-- takes: sequence int
-- gives: type text
SELECT k.type AS type FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence = :sequence;
