-- When an append id was used, so that ids can be purged by age; NULL: before this migration.
ALTER TABLE append_ids ADD COLUMN used_at INTEGER;
