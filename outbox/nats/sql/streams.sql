-- Streams at the broker that consumers read: the tables inbox_broker_streams and inbox_settled.

-- name: insert_broker_stream
-- takes: consumer int, broker_stream text
INSERT INTO inbox_broker_streams (consumer, broker_stream) VALUES (:consumer, :broker_stream)
ON CONFLICT (consumer, broker_stream)
DO UPDATE SET gone_since = NULL WHERE inbox_broker_streams.gone_since IS NOT NULL;

-- name: list_other_streams
-- takes: consumer int, broker_stream text
-- gives: broker_stream text
SELECT broker_stream FROM inbox_broker_streams
WHERE consumer = :consumer AND broker_stream <> :broker_stream;

-- name: note_gone_stream
-- takes: consumer int, broker_stream text, gone_since time
UPDATE inbox_broker_streams SET gone_since = coalesce(gone_since, :gone_since)
WHERE consumer = :consumer AND broker_stream = :broker_stream;

-- name: forget_gone_stream
-- takes: consumer int, broker_stream text, gone_before time
DELETE FROM inbox_broker_streams
WHERE consumer = :consumer AND broker_stream = :broker_stream AND gone_since < :gone_before
  AND NOT EXISTS (SELECT 1 FROM inbox_held
                  WHERE consumer = :consumer AND broker_stream = :broker_stream);

-- name: find_settled
-- takes: consumer int, broker_stream text, filter text, begins text
-- gives: stream_made_at int, settled_through int
SELECT stream_made_at, settled_through FROM inbox_settled
WHERE consumer = :consumer AND broker_stream = :broker_stream AND filter = :filter
  AND begins = :begins;

-- name: upsert_settled
-- takes: consumer int, broker_stream text, filter text, begins text, stream_made_at int,
--        settled_through int
INSERT INTO inbox_settled (consumer, broker_stream, filter, begins, stream_made_at, settled_through)
VALUES (:consumer, :broker_stream, :filter, :begins, :stream_made_at, :settled_through)
ON CONFLICT (consumer, broker_stream) DO UPDATE
SET filter = excluded.filter, begins = excluded.begins, stream_made_at = excluded.stream_made_at,
    settled_through =
      CASE WHEN (inbox_settled.filter, inbox_settled.begins, inbox_settled.stream_made_at)
                = (excluded.filter, excluded.begins, excluded.stream_made_at)
           THEN max(inbox_settled.settled_through, excluded.settled_through)
           ELSE excluded.settled_through END;
