-- What the broker lost, from the adoption of what stands there to the comparison that settles it.

-- name: adopt
-- lost_at: the broker lost messages, or stands before what the partition knows, or a fenced owner
-- is still to look where it stands.
-- takes: partition int, broker_sequence int?, anew bool, now time
UPDATE outbox_partitions
SET stopped = NULL, stopped_detail = NULL, attempts = 0, next_attempt_at = 0, last_error = NULL,
    lost_at = CASE WHEN stopped = 'broker_lost' OR :broker_sequence < broker_sequence
                     OR (:broker_sequence IS NULL
                         AND stopped IN ('foreign_writer', 'unreadable', 'store_went_back'))
                   THEN :now ELSE lost_at END,
    -- Without a number, the owner that adopts counts what is gone.
    lost = lost + CASE WHEN :broker_sequence < broker_sequence
                       THEN broker_sequence - :broker_sequence ELSE 0 END,
    -- 2: that owner takes lost_at back if nothing is gone.
    adopted = CASE WHEN NOT :anew THEN adopted
                   WHEN stopped = 'broker_lost' OR lost_at IS NOT NULL
                     OR :broker_sequence IS NOT NULL THEN 1
                   ELSE 2 END,
    broker_id = CASE WHEN :broker_sequence IS NULL THEN broker_id ELSE '' END,
    broker_sequence = coalesce(:broker_sequence, broker_sequence)
WHERE partition = :partition;

-- name: lost_partitions
-- gives: partition int, lost int, lost_at time
SELECT partition, lost, lost_at FROM outbox_partitions
WHERE lost_at IS NOT NULL ORDER BY partition;

-- name: stopped_for_loss
-- gives: partition int
SELECT partition FROM outbox_partitions WHERE stopped = 'broker_lost' ORDER BY partition LIMIT 1;

-- name: settle_losses
-- takes: until time
UPDATE outbox_partitions SET lost_at = NULL, lost = 0 WHERE lost_at <= :until;

-- name: drop_mistaken_losses
-- What waits to be sent again as lost, if it is more than can be gone.
-- takes: partition int, most int
DELETE FROM outbox_redeliveries
WHERE partition = :partition AND was_lost
  AND (SELECT count(*) FROM outbox_redeliveries WHERE partition = :partition AND was_lost) > :most;

-- name: note_mistaken_losses
-- They count as published again, and as lost at most, until the next comparison; whatever the owner
-- makes of the adoption.
-- takes: partition int, count int, now time
UPDATE outbox_partitions
SET published = published + :count, lost = lost + :count, lost_at = :now,
    adopted = min(adopted, 1)
WHERE partition = :partition;

-- name: published_partitions
-- Retired ones too: what they published stands where it stood. One that published may count nothing
-- any more, after losses; and one that knows of nothing yet, in a restored backup, may have met it
-- at the broker.
-- gives: partition int
SELECT partition FROM outbox_partitions
WHERE published > 0 OR published_through > 0 OR broker_sequence > 0
   OR stopped IN ('store_went_back', 'foreign_writer', 'unreadable')
ORDER BY partition;

-- name: uncount_published
-- A partition that sent messages of others again may have counted it instead.
-- takes: partition int
UPDATE outbox_partitions SET published = published - 1
WHERE partition =
  coalesce((SELECT p.partition FROM outbox_partitions AS p
            WHERE p.partition = :partition AND p.published > 0),
           (SELECT p.partition FROM outbox_partitions AS p WHERE p.published > 0 LIMIT 1));
