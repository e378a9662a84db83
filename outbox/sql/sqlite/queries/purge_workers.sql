-- Silent for long, or alive until absurdly late by a clock that was wrong: whoever lives comes again.
DELETE FROM outbox_workers WHERE heartbeat_until < ?1 OR heartbeat_until > ?2
