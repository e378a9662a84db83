DELETE FROM outbox_discarded WHERE sequence = ?1
