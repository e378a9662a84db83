-- Unless its name is another's by now.
DELETE FROM outbox_workers WHERE worker = ?1 AND presence = ?2
