-- What was known of the failure of a message before it was given up. NULL: none, or an older Stela did
-- it.
ALTER TABLE stela.outbox_discarded ADD COLUMN attempts bigint NOT NULL DEFAULT 0;
ALTER TABLE stela.outbox_discarded ADD COLUMN failure_class text COLLATE "C";
