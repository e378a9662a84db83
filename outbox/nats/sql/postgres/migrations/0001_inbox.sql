-- The inbox on PostgreSQL. Tables and columns have the names and meanings of SQLite's, which
-- docs/schema.md describes. A fillfactor leaves room on each page, so that a row that changes often
-- stays on its own.

CREATE TABLE stela.inbox_consumers (
  consumer   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  paused     smallint NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  paused_at  bigint
);

CREATE TABLE stela.inbox_readers (
  consumer        bigint NOT NULL,
  broker_stream   text COLLATE "C" NOT NULL,
  filter          text COLLATE "C" NOT NULL,
  stream_made_at  bigint NOT NULL DEFAULT 0,
  position        bigint NOT NULL DEFAULT 0,
  position_time   bigint NOT NULL DEFAULT 0,
  began_after     bigint NOT NULL DEFAULT 0,
  known_through   bigint NOT NULL DEFAULT 0,
  epoch           bigint NOT NULL DEFAULT 0,
  owner           text COLLATE "C",
  lease_until     bigint NOT NULL DEFAULT 0,
  lease_ttl       bigint NOT NULL DEFAULT 0,
  presence        bigint,
  unread_since    bigint,
  failing         bigint NOT NULL DEFAULT 0,
  failing_since   bigint,
  attempts        bigint NOT NULL DEFAULT 0,
  next_attempt_at bigint NOT NULL DEFAULT 0,
  error           text NOT NULL DEFAULT '',
  unknown_since   bigint,
  waits_at        bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, broker_stream)
) WITH (fillfactor = 70);

CREATE TABLE stela.inbox_sources (
  consumer      bigint NOT NULL,
  broker_stream text COLLATE "C" NOT NULL,
  source        text COLLATE "C" NOT NULL,
  sequence      bigint NOT NULL,
  PRIMARY KEY (consumer, broker_stream, source)
) WITH (fillfactor = 70);

CREATE TABLE stela.inbox_positions (
  consumer    bigint NOT NULL,
  source      text COLLATE "C" NOT NULL,
  stream      text COLLATE "C" NOT NULL,
  version     bigint NOT NULL,
  event_id    bytea NOT NULL CHECK (octet_length(event_id) = 16),
  recorded_at bigint NOT NULL,
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

CREATE TABLE stela.inbox_parked (
  parked          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer        bigint NOT NULL,
  broker_stream   text COLLATE "C" NOT NULL,
  broker_sequence bigint NOT NULL,
  broker_time     bigint NOT NULL,
  source          text COLLATE "C",
  stream          text COLLATE "C",
  version         bigint,
  subject         text NOT NULL,
  headers         text NOT NULL,
  payload         bytea NOT NULL,
  parked_at       bigint NOT NULL,
  attempts        bigint NOT NULL,
  error           text NOT NULL,
  retry           smallint NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  UNIQUE (consumer, broker_stream, broker_sequence, broker_time)
);
CREATE UNIQUE INDEX inbox_parked_by_stream
  ON stela.inbox_parked (consumer, source, stream, version) WHERE stream IS NOT NULL;
CREATE INDEX inbox_parked_to_retry ON stela.inbox_parked (consumer, parked) WHERE retry = 1;
