UPDATE outbox_redeliveries SET claimed_until = ?2 WHERE claim = ?1
