-- Whether a message was published once, and the broker lost it: it isn't published any more, and its
-- next message id must be a new one.
ALTER TABLE outbox_redeliveries ADD COLUMN was_lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_parked ADD COLUMN was_lost INTEGER NOT NULL DEFAULT 0;
