-- What an adoption gave up at the broker, until an operator has compared the two: when it was, and how
-- many of the broker's sequences were gone.
ALTER TABLE outbox_partitions ADD COLUMN lost_at INTEGER;
ALTER TABLE outbox_partitions ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
-- When what is in flight was last got on with.
ALTER TABLE outbox_partitions ADD COLUMN moved_at INTEGER NOT NULL DEFAULT 0;
