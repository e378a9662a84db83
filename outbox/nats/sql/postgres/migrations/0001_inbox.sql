-- The inbox on PostgreSQL. Tables and columns have the names and meanings of SQLite's, which
-- docs/schema.md describes.

CREATE TABLE stela.inbox_consumers (
  consumer          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name              text COLLATE "C" NOT NULL UNIQUE,
  created_at        bigint NOT NULL,
  forgotten_through bigint NOT NULL DEFAULT 0
);

CREATE TABLE stela.inbox_handled (
  consumer   bigint NOT NULL,
  event_id   bytea NOT NULL CHECK (octet_length(event_id) = 16),
  handled_at bigint NOT NULL,
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX inbox_handled_by_age ON stela.inbox_handled (consumer, handled_at);

-- Room on each page, so that a row that changes often stays on its own.
CREATE TABLE stela.inbox_positions (
  consumer bigint NOT NULL,
  source   text COLLATE "C" NOT NULL,
  stream   text COLLATE "C" NOT NULL,
  version  bigint NOT NULL,
  PRIMARY KEY (consumer, source, stream)
) WITH (fillfactor = 70);

CREATE TABLE stela.inbox_gaps (
  gap      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer bigint NOT NULL,
  source   text COLLATE "C" NOT NULL,
  stream   text COLLATE "C" NOT NULL,
  after    bigint NOT NULL,
  before   bigint NOT NULL,
  missing  bigint,
  seen_at  bigint NOT NULL
);
CREATE INDEX inbox_gaps_by_stream ON stela.inbox_gaps (consumer, source, stream);

CREATE TABLE stela.inbox_failures (
  consumer bigint NOT NULL,
  source   text COLLATE "C" NOT NULL,
  stream   text COLLATE "C" NOT NULL,
  version  bigint NOT NULL,
  attempts bigint NOT NULL,
  error    text NOT NULL,
  PRIMARY KEY (consumer, source, stream, version)
);

CREATE TABLE stela.inbox_held (
  held            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer        bigint NOT NULL,
  source          text COLLATE "C" NOT NULL,
  stream          text COLLATE "C" NOT NULL,
  version         bigint NOT NULL,
  previous        bigint NOT NULL,
  event_id        bytea NOT NULL CHECK (octet_length(event_id) = 16),
  broker_stream   text COLLATE "C" NOT NULL,
  broker_sequence bigint NOT NULL,
  size            bigint NOT NULL,
  held_at         bigint NOT NULL,
  due_at          bigint,
  claims          bigint NOT NULL DEFAULT 0,
  wish            text COLLATE "C" CHECK (wish IN ('retry', 'skip')),
  waited          bigint NOT NULL DEFAULT 0,
  looked_at       bigint,
  UNIQUE (consumer, source, stream, version)
);
CREATE INDEX inbox_held_due ON stela.inbox_held (consumer, broker_stream, due_at)
  WHERE due_at IS NOT NULL;

CREATE TABLE stela.inbox_settled (
  consumer        bigint NOT NULL,
  broker_stream   text COLLATE "C" NOT NULL,
  filter          text COLLATE "C" NOT NULL,
  begins          text COLLATE "C" NOT NULL CHECK (begins IN ('first', 'now')),
  stream_made_at  bigint NOT NULL,
  settled_through bigint NOT NULL,
  PRIMARY KEY (consumer, broker_stream)
);

CREATE TABLE stela.inbox_broker_streams (
  consumer      bigint NOT NULL,
  broker_stream text COLLATE "C" NOT NULL,
  gone_since    bigint,
  PRIMARY KEY (consumer, broker_stream)
);

CREATE TABLE stela.inbox_dead_letters (
  letter          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer        bigint NOT NULL,
  broker_stream   text COLLATE "C" NOT NULL,
  broker_sequence bigint NOT NULL,
  broker_time     bigint NOT NULL,
  subject         text NOT NULL,
  headers         text NOT NULL,
  payload         bytea NOT NULL,
  dead_at         bigint NOT NULL,
  attempts        bigint NOT NULL,
  error           text NOT NULL,
  retry           smallint NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  UNIQUE (consumer, broker_stream, broker_sequence, broker_time)
);
CREATE INDEX inbox_dead_letters_to_retry ON stela.inbox_dead_letters (consumer, letter)
  WHERE retry = 1;

-- Up to when a consumer may have forgotten what it handled.
CREATE FUNCTION stela.inbox_forget() RETURNS trigger LANGUAGE plpgsql
SET search_path = stela, pg_temp AS $$
BEGIN
  UPDATE inbox_consumers AS c SET forgotten_through = f.through
  FROM (SELECT d.consumer, max(d.handled_at) AS through FROM forgotten AS d
        GROUP BY d.consumer) AS f
  WHERE c.consumer = f.consumer AND c.forgotten_through < f.through;
  RETURN NULL;
END $$;
CREATE TRIGGER inbox_forgets AFTER DELETE ON stela.inbox_handled
  REFERENCING OLD TABLE AS forgotten
  FOR EACH STATEMENT EXECUTE FUNCTION stela.inbox_forget();
