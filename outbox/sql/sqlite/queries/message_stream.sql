SELECT stream, claim FROM outbox_messages WHERE partition = ?1 AND sequence = ?2
