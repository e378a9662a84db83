-- Which byte of the lock file each worker has locked for as long as it runs; NULL: of an older Stela.
ALTER TABLE outbox_workers ADD COLUMN presence INTEGER;
