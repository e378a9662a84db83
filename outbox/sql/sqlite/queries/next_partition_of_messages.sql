-- The next partition that any message waits in, whether or not it exists.
SELECT partition FROM outbox_messages WHERE partition > ?1 ORDER BY partition LIMIT 1
