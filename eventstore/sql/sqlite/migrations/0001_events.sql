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

-- Which blocks of 1,024 sequences have events of a kind, so that a reader of rare kinds needn't
-- look at every event. Written once for a kind and a block, where an index would grow with each
-- event.
CREATE TABLE kind_blocks (
  kind  INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (kind, block)
) STRICT, WITHOUT ROWID;

-- The tags of events beside those of their streams, separated by spaces. Part 0 came with the
-- event; later parts were added to history.
CREATE TABLE event_tags (
  sequence INTEGER NOT NULL,
  part     INTEGER NOT NULL CHECK (part >= 0),
  tags     TEXT NOT NULL CHECK (tags <> ''),
  checksum INTEGER NOT NULL,
  PRIMARY KEY (sequence, part)
) STRICT, WITHOUT ROWID;

-- Where the events of a tag are, by the hash of the tag; the kind tells their types apart. Two tags
-- may have one hash: event_tags says which it is.
CREATE TABLE tag_index (
  tag      INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  kind     INTEGER NOT NULL,
  PRIMARY KEY (tag, sequence)
) STRICT, WITHOUT ROWID;

-- Which categories of tags the events of a type carry, and from which sequence on; 0: all of them.
CREATE TABLE tag_types (
  type     TEXT NOT NULL,
  category TEXT NOT NULL,
  always   INTEGER NOT NULL CHECK (always IN (0, 1)),
  several  INTEGER NOT NULL CHECK (several IN (0, 1)),
  since    INTEGER NOT NULL CHECK (since >= 0),
  checksum INTEGER NOT NULL,
  PRIMARY KEY (type, category)
) STRICT, WITHOUT ROWID;

-- Raised whenever history gets other tags: what was decided before is decided again.
CREATE TABLE tag_epoch (
  only  INTEGER PRIMARY KEY CHECK (only = 1),
  epoch INTEGER NOT NULL CHECK (epoch >= 1)
) STRICT;

INSERT INTO tag_epoch (only, epoch) VALUES (1, 1);

-- Which events carry an id as their correlation or as their cause, by a key of that id; also events
-- whose own id isn't one of their time. Two ids may have one key: the event says which it is.
CREATE TABLE event_links (
  link     INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (link, sequence)
) STRICT, WITHOUT ROWID;

-- The events up to this one have their links.
CREATE TABLE event_links_through (
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  sequence INTEGER NOT NULL CHECK (sequence >= 0)
) STRICT;

INSERT INTO event_links_through (only, sequence) VALUES (1, 0);

-- Appends that came with an id of the caller's, so that they can be repeated.
CREATE TABLE append_ids (
  append_id      TEXT NOT NULL PRIMARY KEY,
  first_sequence INTEGER NOT NULL,
  last_sequence  INTEGER NOT NULL,
  checksum       INTEGER NOT NULL,
  used_at        INTEGER NOT NULL
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

-- Keys of personal fields that were destroyed, or are about to be: no event is sealed with one any
-- more. `sequence` is that of the event that says so, or 0.
CREATE TABLE stela_forgotten_keys (
  key_id       BLOB PRIMARY KEY CHECK (length(key_id) = 16),
  sequence     INTEGER NOT NULL,
  forgotten_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The key store of this store's personal fields, and the number of the newest key that an event was
-- sealed with. What is destroyed there and what is forgotten here were the same when the key store
-- had the version `settled_as`. No row: there is none.
CREATE TABLE stela_key_store (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  key_store  BLOB NOT NULL CHECK (length(key_store) = 16),
  newest_key INTEGER NOT NULL,
  settled_as INTEGER NOT NULL
) STRICT;

-- Types of events of which a field was sealed: whoever doesn't know the type appends none of them.
CREATE TABLE stela_personal_types (
  type TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Changes of state, and what operators did where a module has no log of its own. Bounded: old rows
-- go.
CREATE TABLE stela_changes (
  change  INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  part    TEXT NOT NULL,
  subject TEXT NOT NULL,
  what    TEXT NOT NULL,
  who     TEXT NOT NULL,
  detail  TEXT NOT NULL
) STRICT;

-- Findings that an operator knows of, until when, and how bad they were then.
CREATE TABLE stela_acknowledged (
  code     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  severity TEXT NOT NULL,
  amount   INTEGER NOT NULL,
  who      TEXT NOT NULL,
  why      TEXT NOT NULL,
  at       INTEGER NOT NULL,
  until    INTEGER NOT NULL,
  PRIMARY KEY (code, subject)
) STRICT, WITHOUT ROWID;

-- A value a minute of each series for a week, and a value an hour for a quarter of a year. `minute`
-- counts from 1970. A missing row is a gap, and not zero.
CREATE TABLE stela_series (
  series INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE stela_samples (
  series INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  value  INTEGER NOT NULL,
  PRIMARY KEY (series, minute)
) STRICT, WITHOUT ROWID;

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

CREATE TRIGGER event_tags_are_never_updated BEFORE UPDATE ON event_tags
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER event_tags_are_never_deleted BEFORE DELETE ON event_tags
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER tag_index_is_never_updated BEFORE UPDATE ON tag_index
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER tag_index_is_never_deleted BEFORE DELETE ON tag_index
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;
