-- How long a lease is, in microseconds: that of `lease_epoch`, since an older Stela changes only the
-- epoch. And how long a heartbeat is. NULL: not known.
ALTER TABLE outbox_partitions ADD COLUMN lease_ttl INTEGER;
ALTER TABLE outbox_partitions ADD COLUMN lease_epoch INTEGER;
ALTER TABLE outbox_workers ADD COLUMN heartbeat_ttl INTEGER;
