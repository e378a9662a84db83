SELECT stream FROM outbox_messages WHERE partition = ?1 AND sequence = ?2
