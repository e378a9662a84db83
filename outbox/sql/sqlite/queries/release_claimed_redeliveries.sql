UPDATE outbox_redeliveries SET claim = NULL, claimed_until = 0 WHERE claim = ?1
