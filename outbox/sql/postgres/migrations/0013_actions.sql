-- What operators did is one row an action. Its steps are items, rows that name it.
ALTER TABLE stela.outbox_actions ADD COLUMN item_of bigint NOT NULL DEFAULT 0;
ALTER TABLE stela.outbox_actions ADD COLUMN selection text NOT NULL DEFAULT '';
-- Messages that were meant, that it was done to, and that had changed meanwhile. NULL: not counted.
ALTER TABLE stela.outbox_actions ADD COLUMN planned bigint;
ALTER TABLE stela.outbox_actions ADD COLUMN done bigint;
ALTER TABLE stela.outbox_actions ADD COLUMN changed bigint;
ALTER TABLE stela.outbox_actions ADD COLUMN state text NOT NULL DEFAULT 'done';
CREATE INDEX outbox_actions_by_action ON stela.outbox_actions (item_of, action);
