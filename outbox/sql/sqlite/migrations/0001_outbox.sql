-- The outbox. docs/schema.md describes these tables as a format.

-- Facts of this outbox, fixed when it was made.
CREATE TABLE outbox_settings (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  fence   TEXT NOT NULL CHECK (fence IN ('stream', 'subject', 'none')),
  leasing INTEGER NOT NULL CHECK (leasing IN (0, 1))
) STRICT;

-- How publishable events are spread over partitions, from which sequence on. A generation is
-- published once what waits of all earlier ones is gone.
CREATE TABLE outbox_generations (
  generation      INTEGER PRIMARY KEY,
  first_sequence  INTEGER NOT NULL,
  partition_count INTEGER NOT NULL CHECK (partition_count BETWEEN 1 AND 1024)
) STRICT;

-- What waits: a pointer, which message of its partition it is, and what went wrong with it so far.
-- What was published is deleted, so nothing here grows with history. Claims are for outboxes without
-- leasing.
CREATE TABLE outbox_messages (
  partition       INTEGER NOT NULL,
  sequence        INTEGER NOT NULL,
  stream          INTEGER NOT NULL,
  position        INTEGER NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  claimed_until   INTEGER NOT NULL DEFAULT 0,
  claim           TEXT,
  last_error      TEXT,
  PRIMARY KEY (partition, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_messages_retrying ON outbox_messages (partition, sequence) WHERE attempts > 0;
CREATE INDEX outbox_messages_claimed ON outbox_messages (claim) WHERE claim IS NOT NULL;

-- Who relays a partition, and how far it is. The epoch rises with every change of owner, and stands
-- in every update that an owner makes. published_through never falls.
-- Counts are kept, not counted: as many messages wait as positions were given out and not removed.
CREATE TABLE outbox_partitions (
  partition         INTEGER PRIMARY KEY,
  owner             TEXT,
  epoch             INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  lease_until       INTEGER NOT NULL DEFAULT 0,
  published_through INTEGER NOT NULL DEFAULT 0,
  broker_sequence   INTEGER NOT NULL DEFAULT 0,
  broker_id         TEXT NOT NULL DEFAULT '',
  flight_through    INTEGER NOT NULL DEFAULT 0,
  flight_count      INTEGER NOT NULL DEFAULT 0,
  last_position     INTEGER NOT NULL DEFAULT 0,
  removed           INTEGER NOT NULL DEFAULT 0,
  published         INTEGER NOT NULL DEFAULT 0,
  redeliveries      INTEGER NOT NULL DEFAULT 0,
  parked            INTEGER NOT NULL DEFAULT 0,
  discarded         INTEGER NOT NULL DEFAULT 0,
  attempts          INTEGER NOT NULL DEFAULT 0,
  next_attempt_at   INTEGER NOT NULL DEFAULT 0,
  last_error        TEXT,
  stopped           TEXT,
  stopped_detail    TEXT,
  retired_at        INTEGER,
  -- An operator said that what stands at the broker is to be taken as it is.
  adopted           INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE outbox_workers (
  worker          TEXT NOT NULL PRIMARY KEY,
  host            TEXT NOT NULL,
  pid             INTEGER NOT NULL,
  started_at      INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was published when, a row a batch: gives every event its time of publication for as long as
-- the rows are kept. A message that an operator had sent again is a batch of its own.
CREATE TABLE outbox_batches (
  partition      INTEGER NOT NULL,
  last_sequence  INTEGER NOT NULL,
  redelivery     INTEGER NOT NULL DEFAULT 0,
  first_sequence INTEGER NOT NULL,
  count          INTEGER NOT NULL,
  published_at   INTEGER NOT NULL,
  first_broker   INTEGER NOT NULL,
  last_broker    INTEGER NOT NULL,
  PRIMARY KEY (partition, last_sequence, redelivery)
) STRICT, WITHOUT ROWID;

-- Messages that can't be published, and those of their streams that came after them. They wait for
-- an operator, for ever.
CREATE TABLE outbox_parked (
  stream    INTEGER NOT NULL,
  sequence  INTEGER NOT NULL UNIQUE,
  partition INTEGER NOT NULL,
  parked_at INTEGER NOT NULL,
  attempts  INTEGER NOT NULL,
  reason    TEXT NOT NULL CHECK (reason IN ('refused', 'attempts', 'behind')),
  error     TEXT NOT NULL,
  PRIMARY KEY (stream, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox_discarded (
  sequence     INTEGER PRIMARY KEY,
  stream       INTEGER NOT NULL,
  partition    INTEGER NOT NULL,
  discarded_at INTEGER NOT NULL,
  reason       TEXT NOT NULL,
  error        TEXT NOT NULL
) STRICT;

-- What an operator had sent again, in order. A number is never used twice: it is part of the
-- message's id.
CREATE TABLE outbox_redeliveries (
  redelivery   INTEGER PRIMARY KEY AUTOINCREMENT,
  partition    INTEGER NOT NULL,
  generation   INTEGER NOT NULL,
  sequence     INTEGER NOT NULL,
  stream       INTEGER NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('retry', 'republish')),
  requested_at INTEGER NOT NULL,
  attempts     INTEGER NOT NULL DEFAULT 0,
  last_error   TEXT,
  claimed_until INTEGER NOT NULL DEFAULT 0,
  claim        TEXT
) STRICT;
CREATE INDEX outbox_redeliveries_by_partition ON outbox_redeliveries (partition, redelivery);
CREATE INDEX outbox_redeliveries_by_stream ON outbox_redeliveries (stream, sequence);

CREATE TRIGGER outbox_redelivery_counts AFTER INSERT ON outbox_redeliveries BEGIN
  UPDATE outbox_partitions SET redeliveries = redeliveries + 1 WHERE partition = NEW.partition;
END;
CREATE TRIGGER outbox_redelivery_counts_no_more AFTER DELETE ON outbox_redeliveries BEGIN
  UPDATE outbox_partitions SET redeliveries = redeliveries - 1 WHERE partition = OLD.partition;
END;
CREATE TRIGGER outbox_parked_counts AFTER INSERT ON outbox_parked BEGIN
  UPDATE outbox_partitions SET parked = parked + 1 WHERE partition = NEW.partition;
END;
CREATE TRIGGER outbox_parked_counts_no_more AFTER DELETE ON outbox_parked BEGIN
  UPDATE outbox_partitions SET parked = parked - 1 WHERE partition = OLD.partition;
END;
-- For ever, though the rows are purged one day.
CREATE TRIGGER outbox_discarded_counts AFTER INSERT ON outbox_discarded BEGIN
  UPDATE outbox_partitions SET discarded = discarded + 1 WHERE partition = NEW.partition;
END;

-- What operators did.
CREATE TABLE outbox_actions (
  action INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
