SELECT count(*) FROM outbox_actions WHERE at < ?1
