-- The outbox. docs/schema.md describes these tables as a format.

-- How publishable events are spread over partitions, from which sequence on.
CREATE TABLE outbox_generations (
  generation      INTEGER PRIMARY KEY,
  first_sequence  INTEGER NOT NULL,
  partition_count INTEGER NOT NULL CHECK (partition_count BETWEEN 1 AND 1024)
) STRICT;

-- What waits: a pointer, and which message of its partition it is. What was published is deleted,
-- so nothing here grows with history.
CREATE TABLE outbox_messages (
  partition INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  position  INTEGER NOT NULL,
  PRIMARY KEY (partition, sequence)
) STRICT, WITHOUT ROWID;

-- How far each partition is: published_through never falls.
CREATE TABLE outbox_partitions (
  partition         INTEGER PRIMARY KEY,
  published_through INTEGER NOT NULL DEFAULT 0,
  last_position     INTEGER NOT NULL DEFAULT 0
) STRICT;
