-- How long a lease is, in microseconds: that of `lease_epoch`, since an older Stela changes only the
-- epoch. And how long a heartbeat is. NULL: not known.
ALTER TABLE stela.outbox_partitions ADD COLUMN lease_ttl bigint;
ALTER TABLE stela.outbox_partitions ADD COLUMN lease_epoch bigint;
ALTER TABLE stela.outbox_workers ADD COLUMN heartbeat_ttl bigint;
