INSERT INTO inbox_settled (consumer, broker_stream, filter, begins, stream_made_at, settled_through)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO UPDATE
SET filter = excluded.filter, begins = excluded.begins, stream_made_at = excluded.stream_made_at,
    settled_through =
      CASE WHEN (filter, begins, stream_made_at)
                = (excluded.filter, excluded.begins, excluded.stream_made_at)
           THEN max(settled_through, excluded.settled_through) ELSE excluded.settled_through END
