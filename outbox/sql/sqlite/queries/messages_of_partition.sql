SELECT sequence, stream FROM outbox_messages WHERE partition = ?1 ORDER BY sequence LIMIT ?2
