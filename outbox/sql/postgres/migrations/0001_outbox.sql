-- The outbox on PostgreSQL. Tables and columns have the names and meanings of SQLite's, which
-- docs/schema.md describes.

CREATE TABLE stela.outbox_settings (
  one     integer NOT NULL PRIMARY KEY CHECK (one = 1),
  fence   text NOT NULL CHECK (fence IN ('stream', 'subject', 'none')),
  leasing boolean NOT NULL
);

CREATE TABLE stela.outbox_generations (
  generation      bigint NOT NULL PRIMARY KEY,
  first_sequence  bigint NOT NULL,
  partition_count integer NOT NULL CHECK (partition_count BETWEEN 1 AND 1024)
);

CREATE TABLE stela.outbox_messages (
  partition       bigint NOT NULL,
  sequence        bigint NOT NULL,
  stream          bigint NOT NULL,
  attempts        bigint NOT NULL DEFAULT 0,
  next_attempt_at bigint NOT NULL DEFAULT 0,
  last_error      text,
  PRIMARY KEY (partition, sequence)
);
CREATE INDEX outbox_messages_retrying ON stela.outbox_messages (partition, sequence)
  WHERE attempts > 0;

-- Room on each page, so that a row that changes often stays on its own.
CREATE TABLE stela.outbox_partitions (
  partition         bigint NOT NULL PRIMARY KEY,
  owner             text COLLATE "C",
  epoch             bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  lease_until       bigint NOT NULL DEFAULT 0,
  lease_ttl         bigint NOT NULL DEFAULT 0,
  takeovers         bigint NOT NULL DEFAULT 0,
  published_through bigint NOT NULL DEFAULT 0,
  broker_sequence   bigint NOT NULL DEFAULT 0,
  broker_id         text NOT NULL DEFAULT '',
  flight_through    bigint NOT NULL DEFAULT 0,
  flight_count      bigint NOT NULL DEFAULT 0,
  moved_at          bigint NOT NULL DEFAULT 0,
  removed           bigint NOT NULL DEFAULT 0,
  drained_through   bigint NOT NULL DEFAULT 0,
  published         bigint NOT NULL DEFAULT 0,
  redeliveries      bigint NOT NULL DEFAULT 0,
  parked            bigint NOT NULL DEFAULT 0,
  discarded         bigint NOT NULL DEFAULT 0,
  attempts          bigint NOT NULL DEFAULT 0,
  next_attempt_at   bigint NOT NULL DEFAULT 0,
  last_error        text,
  failure_class     text COLLATE "C",
  backing_since     bigint,
  failures          bigint NOT NULL DEFAULT 0,
  stopped           text COLLATE "C",
  stopped_detail    text,
  stopped_at        bigint,
  retired_at        bigint,
  adopted           bigint NOT NULL DEFAULT 0,
  uncompared_since  bigint,
  broker_first      bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

CREATE TABLE stela.outbox_workers (
  worker          text COLLATE "C" NOT NULL PRIMARY KEY,
  host            text NOT NULL,
  pid             bigint NOT NULL,
  presence        bigint NOT NULL,
  started_at      bigint NOT NULL,
  heartbeat_until bigint NOT NULL,
  heartbeat_ttl   bigint NOT NULL,
  broker          text NOT NULL,
  broker_since    bigint NOT NULL,
  is_cut_off      boolean NOT NULL
);

CREATE TABLE stela.outbox_batches (
  partition      bigint NOT NULL,
  last_sequence  bigint NOT NULL,
  redelivery     bigint NOT NULL DEFAULT 0,
  first_sequence bigint NOT NULL,
  count          bigint NOT NULL,
  published_at   bigint NOT NULL,
  first_broker   bigint NOT NULL,
  last_broker    bigint NOT NULL,
  PRIMARY KEY (partition, last_sequence, redelivery)
);

CREATE TABLE stela.outbox_parked (
  stream        bigint NOT NULL,
  sequence      bigint NOT NULL UNIQUE,
  partition     bigint NOT NULL,
  parked_at     bigint NOT NULL,
  attempts      bigint NOT NULL,
  reason        text COLLATE "C" NOT NULL CHECK (reason IN ('refused', 'attempts', 'behind')),
  error         text NOT NULL,
  failure       text COLLATE "C",
  failure_class text COLLATE "C",
  was_lost      boolean NOT NULL DEFAULT false,
  PRIMARY KEY (stream, sequence)
);
CREATE INDEX outbox_parked_by_failure ON stela.outbox_parked (failure, parked_at, sequence)
  WHERE reason <> 'behind';

CREATE TABLE stela.outbox_discarded (
  sequence      bigint NOT NULL PRIMARY KEY,
  stream        bigint NOT NULL,
  partition     bigint NOT NULL,
  discarded_at  bigint NOT NULL,
  attempts      bigint NOT NULL DEFAULT 0,
  reason        text NOT NULL,
  error         text NOT NULL,
  failure_class text COLLATE "C"
);

CREATE TABLE stela.outbox_redeliveries (
  redelivery   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partition    bigint NOT NULL,
  generation   bigint NOT NULL,
  sequence     bigint NOT NULL,
  stream       bigint NOT NULL,
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('retry', 'republish')),
  requested_at bigint NOT NULL,
  attempts     bigint NOT NULL DEFAULT 0,
  last_error   text,
  was_lost     boolean NOT NULL DEFAULT false
);
CREATE INDEX outbox_redeliveries_by_partition
  ON stela.outbox_redeliveries (partition, redelivery);
CREATE INDEX outbox_redeliveries_by_stream ON stela.outbox_redeliveries (stream, sequence);
CREATE INDEX outbox_redeliveries_by_generation ON stela.outbox_redeliveries (generation);

CREATE TABLE stela.outbox_actions (
  action    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item_of   bigint NOT NULL DEFAULT 0,
  at        bigint NOT NULL,
  who       text NOT NULL,
  what      text NOT NULL,
  selection text NOT NULL DEFAULT '',
  detail    text NOT NULL,
  planned   bigint,
  done      bigint,
  changed   bigint,
  state     text NOT NULL DEFAULT 'done'
);
CREATE INDEX outbox_actions_by_action ON stela.outbox_actions (item_of, action);

-- The partitions' counts follow the tables; the argument says which count.
CREATE FUNCTION stela.outbox_count() RETURNS trigger LANGUAGE plpgsql
SET search_path = stela, pg_temp AS $$
DECLARE
  the_partition CONSTANT bigint := CASE TG_OP WHEN 'INSERT' THEN NEW.partition
                                              ELSE OLD.partition END;
  added CONSTANT integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  CASE TG_ARGV[0]
    WHEN 'redeliveries' THEN
      UPDATE outbox_partitions AS p SET redeliveries = p.redeliveries + added
      WHERE p.partition = the_partition;
    WHEN 'parked' THEN
      UPDATE outbox_partitions AS p SET parked = p.parked + added
      WHERE p.partition = the_partition;
    WHEN 'discarded' THEN
      UPDATE outbox_partitions AS p SET discarded = p.discarded + added
      WHERE p.partition = the_partition;
  END CASE;
  RETURN NULL;
END $$;
CREATE TRIGGER outbox_redelivery_counts AFTER INSERT OR DELETE ON stela.outbox_redeliveries
  FOR EACH ROW EXECUTE FUNCTION stela.outbox_count('redeliveries');
CREATE TRIGGER outbox_parked_counts AFTER INSERT OR DELETE ON stela.outbox_parked
  FOR EACH ROW EXECUTE FUNCTION stela.outbox_count('parked');
CREATE TRIGGER outbox_discarded_counts AFTER INSERT ON stela.outbox_discarded
  FOR EACH ROW EXECUTE FUNCTION stela.outbox_count('discarded');

-- No message up to drained_through is pending, or ever will be: sequences are in the order of
-- commits. Whoever looks for messages begins there, as removed ones stay in the index as long as
-- any snapshot may see them. The row is locked by now, and what is read below is newer than that.
CREATE FUNCTION stela.outbox_drain() RETURNS trigger LANGUAGE plpgsql
SET search_path = stela, pg_temp AS $$
BEGIN
  NEW.drained_through := coalesce(
    (SELECT m.sequence - 1 FROM outbox_messages AS m
     WHERE m.partition = NEW.partition AND m.sequence > OLD.drained_through
     ORDER BY m.sequence LIMIT 1),
    (SELECT e.sequence FROM events AS e ORDER BY e.sequence DESC LIMIT 1),
    OLD.drained_through);
  RETURN NEW;
END $$;
CREATE TRIGGER outbox_removal_drains BEFORE UPDATE OF removed ON stela.outbox_partitions
  FOR EACH ROW WHEN (NEW.removed > OLD.removed) EXECUTE FUNCTION stela.outbox_drain();

-- The pointers of a group of appends: append_group calls it, under the order lock, with what the
-- participant made of the events that it wants.
CREATE FUNCTION stela.add_data_rows(sequences bigint[], streams bigint[], keys bigint[])
RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  partitions CONSTANT integer := (SELECT g.partition_count FROM outbox_generations AS g
                                  ORDER BY g.generation DESC LIMIT 1);
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN partitions = 1 THEN 0 ELSE a.key % partitions + 1 END, a.sequence, a.stream
  FROM unnest(sequences, streams, keys) AS a(sequence, stream, key);
END $$;

-- The pointers of a group of appends: append_group_plain calls it, under the order lock, with what
-- the participant made of each event, NULL if nothing.
CREATE FUNCTION stela.add_plain_rows(bases bigint[], streams bigint[], event_appends integer[],
                                     event_ordinals integer[], event_keys bigint[])
RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN g.partition_count = 1 THEN 0 ELSE e.key % g.partition_count + 1 END,
         bases[e.append] + e.ordinal, streams[e.append]
  FROM (SELECT o.partition_count FROM outbox_generations AS o
        ORDER BY o.generation DESC LIMIT 1) AS g,
       (SELECT unnest(event_appends) AS append, unnest(event_ordinals) AS ordinal,
               unnest(event_keys) AS key) AS e
  WHERE bases[e.append] >= 0 AND e.key IS NOT NULL;
END $$;

-- The pointer of an event that append_one appends, with what the participant made of it.
CREATE FUNCTION stela.add_plain_row(the_sequence bigint, the_stream bigint, the_key bigint)
RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO outbox_messages (partition, sequence, stream)
  SELECT CASE WHEN g.partition_count = 1 THEN 0 ELSE the_key % g.partition_count + 1 END,
         the_sequence, the_stream
  FROM outbox_generations AS g ORDER BY g.generation DESC LIMIT 1;
END $$;
