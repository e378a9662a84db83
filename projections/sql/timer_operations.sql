-- Operators' queries and changes of timers.

-- row: listed_timer
-- gives: process text, key text, kind text, version int, state text, due_at time, wake_at time,
--        attempts int, error text, recurrence text, set_at time, correlation_id text,
--        causation_id text, metadata text, payload blob

-- name: processes_of_timers
-- Skips from name to name along the index. Includes unregistered processes.
-- gives: process text
WITH RECURSIVE few (process) AS (
  SELECT min(t.process) FROM projection_timers AS t WHERE t.process > ''
  UNION ALL
  SELECT (SELECT min(t.process) FROM projection_timers AS t WHERE t.process > few.process)
  FROM few WHERE few.process IS NOT NULL)
SELECT process FROM few WHERE process IS NOT NULL;

-- name: timers_on_time
-- Pending timers that aren't being retried: they wake when they are due, in the order of an index.
-- takes: process text, kind text?, due_before time, after_due time, after_key text, after_kind text,
--        most int
-- gives: listed_timer
SELECT process, key, kind, version, state, due_at, wake_at, attempts, error, recurrence, set_at,
       correlation_id, causation_id, metadata, payload
FROM projection_timers
WHERE process = :process AND state = 'pending' AND wake_at = due_at AND wake_at <= :due_before
  AND (:kind IS NULL OR kind = :kind)
  AND (wake_at, key, kind) > (:after_due, :after_key, :after_kind)
ORDER BY wake_at, key, kind LIMIT :most;

-- name: timers_tried_again
-- Usually few. Their own index has another order.
-- takes: process text, kind text?, due_before time, after_due time, after_key text, after_kind text,
--        most int
-- gives: listed_timer
SELECT process, key, kind, version, state, due_at, wake_at, attempts, error, recurrence, set_at,
       correlation_id, causation_id, metadata, payload
FROM projection_timers INDEXED BY projection_timers_retried
WHERE process = :process AND state = 'pending' AND wake_at > due_at AND due_at <= :due_before
  AND (:kind IS NULL OR kind = :kind)
  AND (due_at, key, kind) > (:after_due, :after_key, :after_kind)
ORDER BY due_at, key, kind LIMIT :most;

-- name: timers_set_aside
-- takes: process text, kind text?, state text?, due_before time, after_due time, after_key text,
--        after_kind text, most int
-- gives: listed_timer
SELECT process, key, kind, version, state, due_at, wake_at, attempts, error, recurrence, set_at,
       correlation_id, causation_id, metadata, payload
FROM projection_timers
WHERE process = :process AND state <> 'pending' AND (:state IS NULL OR state = :state)
  AND (:kind IS NULL OR kind = :kind)
  AND due_at <= :due_before AND (due_at, key, kind) > (:after_due, :after_key, :after_kind)
ORDER BY due_at, key, kind LIMIT :most;

-- name: timers_of_key
-- At most one of each kind, in no order.
-- takes: process text, key text, kind text?, state text?, due_before time, after_due time,
--        after_key text, after_kind text
-- gives: listed_timer
SELECT process, key, kind, version, state, due_at, wake_at, attempts, error, recurrence, set_at,
       correlation_id, causation_id, metadata, payload
FROM projection_timers
WHERE process = :process AND key = :key AND (:kind IS NULL OR kind = :kind)
  AND (:state IS NULL OR state = :state) AND due_at <= :due_before
  AND (due_at, key, kind) > (:after_due, :after_key, :after_kind);

-- name: nth_pending_timer
-- Uses only the index, so retried timers count at their next attempt.
-- takes: process text, from_wake time, skipped int
-- gives: wake_at time
SELECT wake_at FROM projection_timers
WHERE process = :process AND state = 'pending' AND wake_at >= :from_wake
ORDER BY wake_at LIMIT 1 OFFSET :skipped;

-- name: count_pending
-- Up to `most`.
-- takes: process text, most int
-- gives: pending int
SELECT count(*) AS pending
FROM (SELECT 1 FROM projection_timers WHERE process = :process AND state = 'pending'
      LIMIT :most) AS few;

-- name: count_set_aside
-- takes: process text, grace_end time
-- gives: unknown int, parked int
SELECT count(*) FILTER (WHERE state = 'unknown' AND due_at > :grace_end) AS unknown,
       count(*) FILTER (WHERE state = 'parked' OR due_at <= :grace_end) AS parked
FROM projection_timers WHERE process = :process AND state <> 'pending';

-- name: count_due
-- Includes timers that will be retried, by their own index. Other timers wake when they are due.
-- takes: process text, now time, overdue_since time
-- gives: due int, overdue int, first time
SELECT count(*) AS due, count(*) FILTER (WHERE due_at <= :overdue_since) AS overdue,
       coalesce(min(due_at), 0) AS first
FROM (SELECT due_at FROM projection_timers
      WHERE process = :process AND state = 'pending' AND wake_at <= :now AND wake_at = due_at
      UNION ALL
      SELECT due_at FROM projection_timers INDEXED BY projection_timers_retried
      WHERE process = :process AND state = 'pending' AND wake_at > due_at AND due_at <= :now);
-- engine: postgres
SELECT count(*) AS due, count(*) FILTER (WHERE due_at <= :overdue_since) AS overdue,
       coalesce(min(due_at), 0) AS first
FROM (SELECT due_at FROM projection_timers
      WHERE process = :process AND state = 'pending' AND wake_at <= :now AND wake_at = due_at
      UNION ALL
      SELECT due_at FROM projection_timers
      WHERE process = :process AND state = 'pending' AND wake_at > due_at AND due_at <= :now) AS t;

-- name: first_wake
-- takes: process text
-- gives: wake_at time
SELECT wake_at FROM projection_timers WHERE process = :process AND state = 'pending'
ORDER BY wake_at LIMIT 1;

-- name: move_timer
-- takes: process text, key text, kind text, due_at time
UPDATE projection_timers
SET generation = generation + 1, state = 'pending', due_at = :due_at, wake_at = :due_at,
    attempts = 0, error = ''
WHERE process = :process AND key = :key AND kind = :kind;

-- name: fire_timer
-- takes: process text, key text, kind text, now time
UPDATE projection_timers
SET generation = generation + 1, state = 'pending',
    due_at = CASE WHEN due_at < :now THEN due_at ELSE :now END,
    wake_at = CASE WHEN due_at < :now THEN due_at ELSE :now END, attempts = 0, error = ''
WHERE process = :process AND key = :key AND kind = :kind;

-- name: retry_timers
-- takes: process text, kind text?
UPDATE projection_timers
SET generation = generation + 1, state = 'pending', wake_at = due_at, attempts = 0, error = ''
WHERE process = :process AND state <> 'pending' AND state = 'parked' AND (:kind IS NULL OR kind = :kind);

-- name: insert_timer_action
-- takes: at time, who text, what text, detail text
INSERT INTO projection_timer_actions (at, who, what, detail) VALUES (:at, :who, :what, :detail);

-- row: timer_action
-- gives: action int, at time, who text, what text, detail text

-- name: list_timer_actions
-- The newest first.
-- takes: after int, before int, most int
-- gives: timer_action
SELECT action, at, who, what, detail FROM projection_timer_actions
WHERE action > :after AND action < :before ORDER BY action DESC LIMIT :most;

-- name: list_timer_actions_forward
-- takes: after int, before int, most int
-- gives: timer_action
SELECT action, at, who, what, detail FROM projection_timer_actions
WHERE action > :after AND action < :before ORDER BY action LIMIT :most;
