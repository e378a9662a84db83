-- The event store. docs/schema.md describes these tables as a format.

-- Facts of this database: its id, codec and durability, fixed when it was made.
CREATE TABLE stela_facts (
  name     TEXT NOT NULL PRIMARY KEY,
  value    TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who must take part in every append: the outbox, inline projectors.
CREATE TABLE stela_participants (
  name          TEXT NOT NULL PRIMARY KEY,
  detail        TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  checksum      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The text of a stream's name, once; events hold the number.
CREATE TABLE streams (
  stream INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
) STRICT;

-- What many events have in common, once; events hold the number.
CREATE TABLE event_kinds (
  kind      INTEGER PRIMARY KEY,
  category  TEXT NOT NULL,
  type      TEXT NOT NULL,
  version   INTEGER NOT NULL CHECK (version >= 1),
  publishes INTEGER NOT NULL CHECK (publishes IN (0, 1)),
  UNIQUE (category, type, version, publishes)
) STRICT;

-- No AUTOINCREMENT: it costs a page per transaction, and events are never deleted.
CREATE TABLE events (
  sequence         INTEGER PRIMARY KEY CHECK (sequence >= 1),
  stream           INTEGER NOT NULL,
  version          INTEGER NOT NULL CHECK (version >= 1),
  kind             INTEGER NOT NULL,
  recorded_at      INTEGER NOT NULL,
  event_id         BLOB NOT NULL CHECK (length(event_id) = 16),
  correlation_id   TEXT,
  causation_id     BLOB CHECK (length(causation_id) = 16),
  published_before INTEGER NOT NULL,
  metadata         TEXT,
  checksum         INTEGER NOT NULL,
  payload          BLOB NOT NULL,
  UNIQUE (stream, version)
) STRICT;

CREATE TRIGGER events_are_never_updated BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER streams_are_never_updated BEFORE UPDATE ON streams
BEGIN SELECT RAISE(ABORT, 'streams are append-only'); END;

CREATE TRIGGER streams_are_never_deleted BEFORE DELETE ON streams
BEGIN SELECT RAISE(ABORT, 'streams are append-only'); END;

CREATE TRIGGER event_kinds_are_never_updated BEFORE UPDATE ON event_kinds
BEGIN SELECT RAISE(ABORT, 'event kinds are append-only'); END;

CREATE TRIGGER event_kinds_are_never_deleted BEFORE DELETE ON event_kinds
BEGIN SELECT RAISE(ABORT, 'event kinds are append-only'); END;

-- Appends that came with an id of the caller's, so that they can be repeated.
CREATE TABLE append_ids (
  append_id      TEXT NOT NULL PRIMARY KEY,
  first_sequence INTEGER NOT NULL,
  last_sequence  INTEGER NOT NULL,
  checksum       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest snapshot of each stream that has one.
CREATE TABLE snapshots (
  stream        INTEGER PRIMARY KEY,
  version       INTEGER NOT NULL,
  sequence      INTEGER NOT NULL,
  state_version INTEGER NOT NULL,
  taken_at      INTEGER NOT NULL,
  checksum      INTEGER NOT NULL,
  payload       BLOB NOT NULL
) STRICT;
