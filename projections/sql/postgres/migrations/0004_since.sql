-- Since when it fails at the event that it fails at, and since when it is stopped; NULL: it isn't, or
-- that isn't known.
ALTER TABLE stela.projections ADD COLUMN failing_since bigint;
ALTER TABLE stela.projections ADD COLUMN stopped_at bigint;
