UPDATE outbox_redeliveries SET attempts = ?2, last_error = ?3 WHERE redelivery = ?1 AND claim = ?4
