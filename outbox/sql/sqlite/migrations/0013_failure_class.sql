-- What kind of trouble a failure is, which tells what helps; NULL: none, or an older Stela noted it.
ALTER TABLE outbox_parked ADD COLUMN failure_class TEXT;
ALTER TABLE outbox_partitions ADD COLUMN failure_class TEXT;
