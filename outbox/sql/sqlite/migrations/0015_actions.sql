-- What operators did is one row an action. Its steps are items, rows that name it.
ALTER TABLE outbox_actions ADD COLUMN item_of INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_actions ADD COLUMN selection TEXT NOT NULL DEFAULT '';
-- Messages that were meant, that it was done to, and that had changed meanwhile. NULL: not counted.
ALTER TABLE outbox_actions ADD COLUMN planned INTEGER;
ALTER TABLE outbox_actions ADD COLUMN done INTEGER;
ALTER TABLE outbox_actions ADD COLUMN changed INTEGER;
ALTER TABLE outbox_actions ADD COLUMN state TEXT NOT NULL DEFAULT 'done';
CREATE INDEX outbox_actions_by_action ON outbox_actions (item_of, action);
