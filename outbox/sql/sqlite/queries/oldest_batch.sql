SELECT first_sequence FROM outbox_batches WHERE partition = ?1 AND redelivery = 0
ORDER BY last_sequence LIMIT 1
