-- What was known of the failure of a message before it was given up. NULL: none, or an older Stela did
-- it.
ALTER TABLE outbox_discarded ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_discarded ADD COLUMN failure_class TEXT;
