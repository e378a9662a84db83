SELECT count(*) FROM outbox_messages WHERE partition = ?1
