-- Up to when a consumer may have forgotten what it handled. An unknown event under a version that it
-- has handled is another event if it was recorded later.
ALTER TABLE inbox_consumers ADD COLUMN forgotten_through INTEGER NOT NULL DEFAULT 0;
UPDATE inbox_consumers SET forgotten_through = coalesce(
  (SELECT min(h.handled_at) FROM inbox_handled AS h WHERE h.consumer = inbox_consumers.consumer), 0);
CREATE TRIGGER inbox_forgets AFTER DELETE ON inbox_handled BEGIN
  UPDATE inbox_consumers SET forgotten_through = OLD.handled_at
  WHERE consumer = OLD.consumer AND forgotten_through < OLD.handled_at;
END;
