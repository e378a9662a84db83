-- Since when it fails at the message that it fails at, since when nobody reads, and since when the
-- consumer is paused; NULL: it isn't so, or that isn't known.
ALTER TABLE inbox_readers ADD COLUMN failing_since INTEGER;
ALTER TABLE inbox_readers ADD COLUMN unread_since INTEGER;
ALTER TABLE inbox_consumers ADD COLUMN paused_at INTEGER;
