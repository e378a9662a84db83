DELETE FROM outbox_batches
WHERE partition = ?1 AND last_sequence > ?2 AND last_sequence <= ?3 AND published_at < ?4
