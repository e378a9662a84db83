-- The inbox: what consumers of a broker's messages have done. docs/schema.md describes these tables
-- as a format.

CREATE TABLE inbox_consumers (
  consumer   INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  paused     INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  paused_at  INTEGER
) STRICT;

-- A consumer follows each JetStream stream that it reads: how far it is, who reads, and what
-- failed.
CREATE TABLE inbox_readers (
  consumer        INTEGER NOT NULL,
  broker_stream   TEXT NOT NULL,
  filter          TEXT NOT NULL,
  -- When the broker made the stream, in nanoseconds by its clock; 0 until the reader has begun
  -- there.
  stream_made_at  INTEGER NOT NULL DEFAULT 0,
  -- The last message of the stream that was handled, parked or passed over, and when the broker
  -- stored it, in nanoseconds; 0 if that isn't known.
  position        INTEGER NOT NULL DEFAULT 0,
  position_time   INTEGER NOT NULL DEFAULT 0,
  -- Where the reader began: what came before it isn't missing.
  began_after     INTEGER NOT NULL DEFAULT 0,
  -- Messages up to here may come for the second time: the stream went back, or was made again.
  known_through   INTEGER NOT NULL DEFAULT 0,
  epoch           INTEGER NOT NULL DEFAULT 0,
  owner           TEXT,
  lease_until     INTEGER NOT NULL DEFAULT 0,
  lease_ttl       INTEGER NOT NULL DEFAULT 0,
  presence        INTEGER,
  unread_since    INTEGER,
  -- The message after the position, if it failed.
  failing         INTEGER NOT NULL DEFAULT 0,
  failing_since   INTEGER,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  error           TEXT NOT NULL DEFAULT '',
  -- When a process first met it without knowing the version of its event.
  unknown_since   INTEGER,
  -- The generation of the message that waits for other readers of this consumer; 0 if none does.
  waits_at        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, broker_stream)
) STRICT, WITHOUT ROWID;

-- The last event of each store that a relay with a fence published to the stream for the first
-- time: what comes after it has a higher sequence, unless the store went back.
CREATE TABLE inbox_sources (
  consumer      INTEGER NOT NULL,
  broker_stream TEXT NOT NULL,
  source        TEXT NOT NULL,
  sequence      INTEGER NOT NULL,
  PRIMARY KEY (consumer, broker_stream, source)
) STRICT, WITHOUT ROWID;

-- The last published version of each stream that a consumer of all events has met. The event of
-- that version tells a copy from another history.
CREATE TABLE inbox_positions (
  consumer    INTEGER NOT NULL,
  source      TEXT NOT NULL,
  stream      TEXT NOT NULL,
  version     INTEGER NOT NULL,
  event_id    BLOB NOT NULL CHECK (length(event_id) = 16),
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, source, stream)
) STRICT, WITHOUT ROWID;

-- Where messages should have been and weren't: after version `after`, before version `before`.
CREATE TABLE inbox_gaps (
  gap      INTEGER PRIMARY KEY,
  consumer INTEGER NOT NULL,
  source   TEXT NOT NULL,
  stream   TEXT NOT NULL,
  after    INTEGER NOT NULL,
  before   INTEGER NOT NULL,
  -- The message before version `before`, by what that one says; NULL where nobody expected it.
  missing  INTEGER,
  seen_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX inbox_gaps_by_stream ON inbox_gaps (consumer, source, stream);

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
  -- Empty: it waits for an earlier one of its stream.
  error           TEXT NOT NULL,
  retry           INTEGER NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  UNIQUE (consumer, broker_stream, broker_sequence, broker_time)
) STRICT;
CREATE UNIQUE INDEX inbox_parked_by_stream ON inbox_parked (consumer, source, stream, version)
  WHERE stream IS NOT NULL;
CREATE INDEX inbox_parked_to_retry ON inbox_parked (consumer, parked) WHERE retry = 1;
