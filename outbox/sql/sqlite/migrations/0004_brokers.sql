-- How each worker sees its broker, in words, and whether it gave its partitions up over that.
ALTER TABLE outbox_workers ADD COLUMN broker TEXT;
ALTER TABLE outbox_workers ADD COLUMN is_cut_off INTEGER NOT NULL DEFAULT 0;
