-- The end of the next page of the log, and how many of its rows are older than ?3.
SELECT max(last_sequence), count(*), sum(published_at < ?3)
FROM (SELECT last_sequence, published_at FROM outbox_batches
      WHERE partition = ?1 AND last_sequence > ?2 ORDER BY last_sequence LIMIT ?4)
