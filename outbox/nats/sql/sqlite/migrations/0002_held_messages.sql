-- Shuts out older writers.
-- Messages that were taken over from the broker and can't be handled yet: those that failed, those
-- that wait for an earlier one of their stream, and those behind them. They are read from the broker
-- again, by their sequence, when it is their turn.
CREATE TABLE inbox_held (
  held            INTEGER PRIMARY KEY,
  consumer        INTEGER NOT NULL,
  source          TEXT NOT NULL,
  stream          TEXT NOT NULL,
  version         INTEGER NOT NULL,
  -- The version that was published before it.
  previous        INTEGER NOT NULL,
  event_id        BLOB NOT NULL CHECK (length(event_id) = 16),
  broker_stream   TEXT NOT NULL,
  broker_sequence INTEGER NOT NULL,
  size            INTEGER NOT NULL,
  held_at         INTEGER NOT NULL,
  -- When it is looked at next; NULL while an earlier one of its stream is held.
  due_at          INTEGER,
  -- How often it was taken up since it was last known what became of that.
  claims          INTEGER NOT NULL DEFAULT 0,
  wish            TEXT CHECK (wish IN ('retry', 'skip')),
  UNIQUE (consumer, source, stream, version)
) STRICT;
CREATE INDEX inbox_held_due ON inbox_held (consumer, broker_stream, due_at) WHERE due_at IS NOT NULL;

-- A consumer of 0.1.0 doesn't know what is held, and would handle what comes after it.
ALTER TABLE inbox_handled ADD COLUMN knows_held INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER inbox_is_newer BEFORE INSERT ON inbox_handled WHEN NEW.knows_held = 0
  BEGIN SELECT RAISE(ABORT, 'a newer Stela migrated this inbox; restart the consumer with it'); END;
