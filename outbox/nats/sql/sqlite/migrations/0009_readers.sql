-- Shuts out older writers.
-- A consumer follows each JetStream stream that it reads: how far it is, who reads, and what failed.
CREATE TABLE inbox_readers (
  consumer        INTEGER NOT NULL,
  broker_stream   TEXT NOT NULL,
  filter          TEXT NOT NULL,
  -- When the broker made the stream, in nanoseconds by its clock; 0 until the reader has begun there.
  stream_made_at  INTEGER NOT NULL DEFAULT 0,
  -- The last message of the stream that was handled, parked or passed over, and when the broker stored
  -- it, in nanoseconds; 0 if that isn't known.
  position        INTEGER NOT NULL DEFAULT 0,
  position_time   INTEGER NOT NULL DEFAULT 0,
  -- Where the reader began: what came before it isn't missing.
  began_after     INTEGER NOT NULL DEFAULT 0,
  -- An older consumer may have handled messages up to here, in any order: see inbox_handled.
  known_through   INTEGER NOT NULL DEFAULT 0,
  epoch           INTEGER NOT NULL DEFAULT 0,
  owner           TEXT,
  lease_until     INTEGER NOT NULL DEFAULT 0,
  lease_ttl       INTEGER NOT NULL DEFAULT 0,
  presence        INTEGER,
  -- The message behind the position, if it failed.
  failing         INTEGER NOT NULL DEFAULT 0,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  error           TEXT NOT NULL DEFAULT '',
  -- When a process first met it without knowing the version of its event.
  unknown_since   INTEGER,
  -- The sequence of the message that waits for other readers of this consumer; 0 if none does.
  waits_at        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, broker_stream)
) STRICT, WITHOUT ROWID;

-- The last event of each store that a relay with a fence published to the stream for the first time: what
-- comes behind it has a higher sequence, unless the store went back.
CREATE TABLE inbox_sources (
  consumer      INTEGER NOT NULL,
  broker_stream TEXT NOT NULL,
  source        TEXT NOT NULL,
  sequence      INTEGER NOT NULL,
  PRIMARY KEY (consumer, broker_stream, source)
) STRICT, WITHOUT ROWID;

ALTER TABLE inbox_consumers ADD COLUMN paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1));

-- Messages that weren't handled, whole. They wait for an operator, for ever.
CREATE TABLE inbox_parked (
  parked          INTEGER PRIMARY KEY,
  consumer        INTEGER NOT NULL,
  broker_stream   TEXT NOT NULL,
  broker_sequence INTEGER NOT NULL,
  broker_time     INTEGER NOT NULL,
  -- Of the event whose stream waits with it; NULL if none does.
  source          TEXT,
  stream          TEXT,
  version         INTEGER,
  subject         TEXT NOT NULL,
  headers         TEXT NOT NULL,
  payload         BLOB NOT NULL,
  parked_at       INTEGER NOT NULL,
  attempts        INTEGER NOT NULL,
  -- Empty: it waits behind an earlier one of its stream.
  error           TEXT NOT NULL,
  retry           INTEGER NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  UNIQUE (consumer, broker_stream, broker_sequence, broker_time)
) STRICT;
CREATE UNIQUE INDEX inbox_parked_by_stream ON inbox_parked (consumer, source, stream, version)
  WHERE stream IS NOT NULL;
CREATE INDEX inbox_parked_to_retry ON inbox_parked (consumer, parked) WHERE retry = 1;

-- The event of that version: tells a copy from another history. NULL if an older consumer met it.
ALTER TABLE inbox_positions ADD COLUMN event_id BLOB;
ALTER TABLE inbox_positions ADD COLUMN recorded_at INTEGER;

INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, subject, headers,
                          payload, parked_at, attempts, error, retry)
SELECT consumer, broker_stream, broker_sequence, broker_time, subject, headers, payload, dead_at,
       attempts, error, retry
FROM inbox_dead_letters ORDER BY letter;

INSERT INTO inbox_readers (consumer, broker_stream, filter, position)
SELECT consumer, broker_stream, filter, settled_through FROM inbox_settled WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO inbox_readers (consumer, broker_stream, filter)
SELECT consumer, broker_stream, '' FROM inbox_broker_streams WHERE true
ON CONFLICT DO NOTHING;
-- What is held is read again.
ALTER TABLE inbox_readers ADD COLUMN held_from INTEGER;
UPDATE inbox_readers SET held_from =
  (SELECT min(h.broker_sequence) FROM inbox_held AS h
   WHERE h.consumer = inbox_readers.consumer AND h.broker_stream = inbox_readers.broker_stream);

DROP TABLE inbox_held;
DROP TABLE inbox_failures;
DROP TABLE inbox_settled;
DROP TABLE inbox_broker_streams;
DROP TABLE inbox_dead_letters;

-- What was handled isn't forgotten any more, nor added to.
DROP TRIGGER inbox_forgets;
ALTER TABLE inbox_consumers DROP COLUMN forgotten_through;
