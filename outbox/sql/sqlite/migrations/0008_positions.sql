-- Shuts out older writers.
-- Pending messages are counted when somebody looks, up to a limit: messages aren't numbered.
ALTER TABLE outbox_messages DROP COLUMN position;
ALTER TABLE outbox_partitions DROP COLUMN last_position;

-- A relay of 0.1.0 couldn't note what it has published: it gets no lease, and can't renew one. Newer
-- relays say whose epoch the length of the lease belongs to.
CREATE TRIGGER outbox_is_newer BEFORE UPDATE OF epoch, lease_until ON outbox_partitions
  WHEN NEW.lease_until > 0 AND NEW.lease_epoch IS NOT NEW.epoch
  BEGIN SELECT RAISE(ABORT, 'a newer Stela migrated this outbox; restart the relay with it'); END;
