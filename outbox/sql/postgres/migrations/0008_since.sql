-- Since when something waits for somebody; NULL: it doesn't, or that isn't known.
ALTER TABLE stela.outbox_partitions ADD COLUMN stopped_at bigint;
ALTER TABLE stela.outbox_partitions ADD COLUMN backing_since bigint;
ALTER TABLE stela.outbox_workers ADD COLUMN broker_since bigint;
-- How often in all it has failed to publish, and how often somebody took it from another worker.
ALTER TABLE stela.outbox_partitions ADD COLUMN failures bigint NOT NULL DEFAULT 0;
ALTER TABLE stela.outbox_partitions ADD COLUMN takeovers bigint NOT NULL DEFAULT 0;
