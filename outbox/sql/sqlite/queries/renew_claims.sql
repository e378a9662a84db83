UPDATE outbox_messages SET claimed_until = ?2 WHERE claim = ?1
