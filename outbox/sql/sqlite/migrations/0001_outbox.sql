-- The outbox. docs/schema.md describes these tables as a format.

-- Facts of this outbox, fixed when it was made.
CREATE TABLE outbox_settings (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  fence   TEXT NOT NULL CHECK (fence IN ('stream', 'subject', 'none')),
  leasing INTEGER NOT NULL CHECK (leasing IN (0, 1))
) STRICT;

-- How publishable events are spread over partitions, from which sequence on. A generation is
-- published once no message of an earlier one is pending.
CREATE TABLE outbox_generations (
  generation      INTEGER PRIMARY KEY,
  first_sequence  INTEGER NOT NULL,
  partition_count INTEGER NOT NULL CHECK (partition_count BETWEEN 1 AND 1024)
) STRICT;

-- Pending messages: a pointer, and what went wrong with it so far. What was published is deleted,
-- so nothing here grows with history.
CREATE TABLE outbox_messages (
  partition       INTEGER NOT NULL,
  sequence        INTEGER NOT NULL,
  stream          INTEGER NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT,
  PRIMARY KEY (partition, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_messages_retrying ON outbox_messages (partition, sequence) WHERE attempts > 0;

-- Who relays a partition, and how far it is. The epoch rises with every change of owner, and stands
-- in every update that an owner makes. published_through never falls.
-- Triggers keep the counts of the tables below.
CREATE TABLE outbox_partitions (
  partition         INTEGER PRIMARY KEY,
  owner             TEXT,
  epoch             INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  lease_until       INTEGER NOT NULL DEFAULT 0,
  -- How long the lease is when it is taken or renewed.
  lease_ttl         INTEGER NOT NULL DEFAULT 0,
  -- How often a worker took it from another one.
  takeovers         INTEGER NOT NULL DEFAULT 0,
  published_through INTEGER NOT NULL DEFAULT 0,
  broker_sequence   INTEGER NOT NULL DEFAULT 0,
  broker_id         TEXT NOT NULL DEFAULT '',
  flight_through    INTEGER NOT NULL DEFAULT 0,
  flight_count      INTEGER NOT NULL DEFAULT 0,
  -- When messages in flight last made progress.
  moved_at          INTEGER NOT NULL DEFAULT 0,
  removed           INTEGER NOT NULL DEFAULT 0,
  published         INTEGER NOT NULL DEFAULT 0,
  redeliveries      INTEGER NOT NULL DEFAULT 0,
  parked            INTEGER NOT NULL DEFAULT 0,
  discarded         INTEGER NOT NULL DEFAULT 0,
  -- Of the message that fails, or of the broker; `failures` counts all that ever were.
  attempts          INTEGER NOT NULL DEFAULT 0,
  next_attempt_at   INTEGER NOT NULL DEFAULT 0,
  last_error        TEXT,
  failure_class     TEXT,
  backing_since     INTEGER,
  failures          INTEGER NOT NULL DEFAULT 0,
  stopped           TEXT,
  stopped_detail    TEXT,
  stopped_at        INTEGER,
  retired_at        INTEGER,
  -- An operator said that the stream's contents are to be taken as they are.
  adopted           INTEGER NOT NULL DEFAULT 0,
  -- Since when the broker may lack what was published: the partition was adopted, and not compared
  -- with the broker since.
  uncompared_since  INTEGER,
  -- The stream's first message, as it was when all was compared with the broker.
  broker_first      INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE outbox_workers (
  worker          TEXT NOT NULL PRIMARY KEY,
  host            TEXT NOT NULL,
  pid             INTEGER NOT NULL,
  -- The byte of the lock file that it has locked for as long as it runs.
  presence        INTEGER NOT NULL,
  started_at      INTEGER NOT NULL,
  heartbeat_until INTEGER NOT NULL,
  heartbeat_ttl   INTEGER NOT NULL,
  -- How it sees its broker, in words, and since when; and whether it gave its partitions up over
  -- that.
  broker          TEXT NOT NULL,
  broker_since    INTEGER NOT NULL,
  is_cut_off      INTEGER NOT NULL CHECK (is_cut_off IN (0, 1))
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
-- an operator, for ever. `failure` is what failures have in common, and `failure_class` tells what
-- helps; NULL: the message only follows another one. `was_lost`: it was published once, and the
-- broker lost it, so that its next message id must be a new one.
CREATE TABLE outbox_parked (
  stream        INTEGER NOT NULL,
  sequence      INTEGER NOT NULL UNIQUE,
  partition     INTEGER NOT NULL,
  parked_at     INTEGER NOT NULL,
  attempts      INTEGER NOT NULL,
  reason        TEXT NOT NULL CHECK (reason IN ('refused', 'attempts', 'behind')),
  error         TEXT NOT NULL,
  failure       TEXT,
  failure_class TEXT,
  was_lost      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (stream, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_parked_by_failure ON outbox_parked (failure, parked_at, sequence)
  WHERE reason <> 'behind';

CREATE TABLE outbox_discarded (
  sequence      INTEGER PRIMARY KEY,
  stream        INTEGER NOT NULL,
  partition     INTEGER NOT NULL,
  discarded_at  INTEGER NOT NULL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  reason        TEXT NOT NULL,
  error         TEXT NOT NULL,
  failure_class TEXT
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
  was_lost     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_redeliveries_by_partition ON outbox_redeliveries (partition, redelivery);
CREATE INDEX outbox_redeliveries_by_stream ON outbox_redeliveries (stream, sequence);
CREATE INDEX outbox_redeliveries_by_generation ON outbox_redeliveries (generation);

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
CREATE TRIGGER outbox_discarded_counts AFTER INSERT ON outbox_discarded BEGIN
  UPDATE outbox_partitions SET discarded = discarded + 1 WHERE partition = NEW.partition;
END;

-- What operators did, a row an action. Its steps are items, rows that name it by `item_of`. How
-- many messages were meant, how many it was done to, and how many had changed meanwhile; NULL: not
-- counted.
CREATE TABLE outbox_actions (
  action    INTEGER PRIMARY KEY,
  item_of   INTEGER NOT NULL DEFAULT 0,
  at        INTEGER NOT NULL,
  who       TEXT NOT NULL,
  what      TEXT NOT NULL,
  selection TEXT NOT NULL DEFAULT '',
  detail    TEXT NOT NULL,
  planned   INTEGER,
  done      INTEGER,
  changed   INTEGER,
  state     TEXT NOT NULL DEFAULT 'done'
) STRICT;
CREATE INDEX outbox_actions_by_action ON outbox_actions (item_of, action);
