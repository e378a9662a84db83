-- The inbox: what consumers of a broker's messages have done. docs/schema.md describes these tables
-- as a format.

CREATE TABLE inbox_consumers (
  consumer   INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT;

-- Events whose effect is in this database, kept for the inbox's retention.
CREATE TABLE inbox_handled (
  consumer   INTEGER NOT NULL,
  event_id   BLOB NOT NULL CHECK (length(event_id) = 16),
  handled_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_handled_by_age ON inbox_handled (consumer, handled_at);

-- The last published version of each stream that a consumer of all events has met.
CREATE TABLE inbox_positions (
  consumer INTEGER NOT NULL,
  source   TEXT NOT NULL,
  stream   TEXT NOT NULL,
  version  INTEGER NOT NULL,
  PRIMARY KEY (consumer, source, stream)
) STRICT, WITHOUT ROWID;

-- Where messages should have been and weren't: behind version `after`, before version `before`.
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

-- Messages that failed, and are going to be tried again.
CREATE TABLE inbox_failures (
  consumer INTEGER NOT NULL,
  source   TEXT NOT NULL,
  stream   TEXT NOT NULL,
  version  INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  error    TEXT NOT NULL,
  PRIMARY KEY (consumer, source, stream, version)
) STRICT, WITHOUT ROWID;

-- Messages that were given up, whole. They wait for an operator, for ever.
CREATE TABLE inbox_dead_letters (
  letter          INTEGER PRIMARY KEY,
  consumer        INTEGER NOT NULL,
  broker_stream   TEXT NOT NULL,
  broker_sequence INTEGER NOT NULL,
  broker_time     INTEGER NOT NULL,
  subject         TEXT NOT NULL,
  headers         TEXT NOT NULL,
  payload         BLOB NOT NULL,
  dead_at         INTEGER NOT NULL,
  attempts        INTEGER NOT NULL,
  error           TEXT NOT NULL,
  retry           INTEGER NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  UNIQUE (consumer, broker_stream, broker_sequence, broker_time)
) STRICT;
CREATE INDEX inbox_dead_letters_to_retry ON inbox_dead_letters (consumer, letter) WHERE retry = 1;
