-- Since when the broker may lack what was published: the partition was adopted, and not compared with
-- the broker since. NULL: it isn't known to lack anything.
ALTER TABLE stela.outbox_partitions ADD COLUMN uncompared_since bigint;
-- The stream's first message, as it was when all was compared with the broker.
ALTER TABLE stela.outbox_partitions ADD COLUMN broker_first bigint NOT NULL DEFAULT 1;
