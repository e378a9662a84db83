-- The logs of batches and of operators' actions, and their purge.

-- name: insert_action
-- takes: at time, who text, what text, detail text
INSERT INTO outbox_actions (at, who, what, detail) VALUES (:at, :who, :what, :detail);

-- name: begin_action
-- takes: at time, who text, what text, selection text, planned int?, done int, state text,
--        detail text
-- gives: action int
INSERT INTO outbox_actions (at, who, what, selection, planned, done, changed, state, detail)
VALUES (:at, :who, :what, :selection, :planned, :done, 0, :state, :detail)
RETURNING action;

-- name: count_done
-- takes: action int, count int
UPDATE outbox_actions SET done = done + :count WHERE action = :action;

-- name: insert_item
-- takes: item_of int, at time, who text, what text, detail text
INSERT INTO outbox_actions (item_of, at, who, what, detail)
VALUES (:item_of, :at, :who, :what, :detail);

-- name: copy_action
-- Copies the action as its own first item.
-- takes: action int
INSERT INTO outbox_actions (item_of, at, who, what, detail)
SELECT a.action, a.at, a.who, a.what, a.detail FROM outbox_actions AS a WHERE a.action = :action;

-- name: end_action
-- takes: action int, changed int, state text, detail text?
UPDATE outbox_actions
SET changed = :changed, state = :state, detail = coalesce(:detail, detail)
WHERE action = :action;

-- row: action
-- gives: action int, at time, who text, what text, selection text, planned int?, done int?,
--        changed int?, state text, detail text

-- name: list_actions
-- Actions, or the items of one, the newest first.
-- takes: item_of int, after int, before int, most int
-- gives: action
SELECT action, at, who, what, selection, planned, done, changed, state, detail
FROM outbox_actions WHERE item_of = :item_of AND action > :after AND action < :before
ORDER BY action DESC LIMIT :most;

-- name: list_actions_forward
-- takes: item_of int, after int, before int, most int
-- gives: action
SELECT action, at, who, what, selection, planned, done, changed, state, detail
FROM outbox_actions WHERE item_of = :item_of AND action > :after AND action < :before
ORDER BY action LIMIT :most;

-- name: list_batches
-- takes: partition int, most int
-- gives: partition int, first_sequence int, last_sequence int, count int, redelivery int,
--        published_at time, first_broker int, last_broker int
SELECT partition, first_sequence, last_sequence, count, redelivery, published_at, first_broker,
       last_broker
FROM outbox_batches WHERE partition = :partition
ORDER BY last_sequence DESC, redelivery DESC LIMIT :most;

-- name: partition_numbers
-- gives: partition int
SELECT partition FROM outbox_partitions ORDER BY partition;

-- name: batch_page
-- The last sequence of the log's next page, and how many of its rows are old. Rows of imported
-- events are kept: their places at the broker aren't in the order of sequences.
-- takes: partition int, after int, old_before time, most int
-- gives: last int, count int, old int
SELECT max(last_sequence) AS last, count(*) AS count,
       sum(published_at < :old_before AND redelivery >= 0) AS old
FROM (SELECT last_sequence, redelivery, published_at FROM outbox_batches
      WHERE partition = :partition AND last_sequence > :after ORDER BY last_sequence LIMIT :most);
-- engine: postgres
SELECT max(last_sequence) AS last, count(*) AS count,
       count(*) FILTER (WHERE published_at < :old_before AND redelivery >= 0) AS old
FROM (SELECT last_sequence, redelivery, published_at FROM outbox_batches
      WHERE partition = :partition AND last_sequence > :after ORDER BY last_sequence LIMIT :most)
     AS page;

-- name: purge_batches
-- takes: partition int, after int, last int, old_before time
DELETE FROM outbox_batches
WHERE partition = :partition AND last_sequence > :after AND last_sequence <= :last
  AND published_at < :old_before AND redelivery >= 0;

-- name: count_old_actions
-- takes: old_before time
-- gives: count int
SELECT count(*) AS count FROM outbox_actions WHERE at < :old_before;

-- name: oldest_action
-- gives: at time
SELECT at FROM outbox_actions ORDER BY action LIMIT 1;

-- name: purge_actions
-- Keeps the last one, so that its number isn't reused.
-- takes: old_before time, most int
DELETE FROM outbox_actions WHERE action IN
  (SELECT action FROM outbox_actions
   WHERE at < :old_before AND action < (SELECT max(action) FROM outbox_actions)
   ORDER BY action LIMIT :most);
