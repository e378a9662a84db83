-- What was never published comes first.
SELECT redelivery, kind, partition, attempts, last_error FROM outbox_redeliveries
WHERE stream = ?1 AND sequence = ?2 ORDER BY kind = 'republish', redelivery
