-- Since when something waits for somebody; NULL: it doesn't, or that isn't known.
ALTER TABLE outbox_partitions ADD COLUMN stopped_at INTEGER;
ALTER TABLE outbox_partitions ADD COLUMN backing_since INTEGER;
ALTER TABLE outbox_workers ADD COLUMN broker_since INTEGER;
-- How often in all it has failed to publish, and how often somebody took it from another worker.
ALTER TABLE outbox_partitions ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_partitions ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0;
