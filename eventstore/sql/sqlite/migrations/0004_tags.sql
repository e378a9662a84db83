-- Shuts out older writers.
-- The tags of events beside those of their streams, separated by spaces. Part 0 came with the event;
-- later parts were added to history.
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

CREATE TRIGGER event_tags_are_never_updated BEFORE UPDATE ON event_tags
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER event_tags_are_never_deleted BEFORE DELETE ON event_tags
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER tag_index_is_never_updated BEFORE UPDATE ON tag_index
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;

CREATE TRIGGER tag_index_is_never_deleted BEFORE DELETE ON tag_index
BEGIN SELECT RAISE(ABORT, 'tags are append-only'); END;
