-- What kind of trouble a failure is, which tells what helps; NULL: none, or an older Stela noted it.
ALTER TABLE stela.outbox_parked ADD COLUMN failure_class text COLLATE "C";
ALTER TABLE stela.outbox_partitions ADD COLUMN failure_class text COLLATE "C";
