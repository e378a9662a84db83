-- Shuts out older writers.
-- A consumer follows each JetStream stream that it reads. Columns as on SQLite. Room on each page, so
-- that a row that changes often stays on its own.
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
  failing         bigint NOT NULL DEFAULT 0,
  attempts        bigint NOT NULL DEFAULT 0,
  next_attempt_at bigint NOT NULL DEFAULT 0,
  error           text NOT NULL DEFAULT '',
  unknown_since   bigint,
  waits_at        bigint NOT NULL DEFAULT 0,
  held_from       bigint,
  PRIMARY KEY (consumer, broker_stream)
) WITH (fillfactor = 70);

CREATE TABLE stela.inbox_sources (
  consumer      bigint NOT NULL,
  broker_stream text COLLATE "C" NOT NULL,
  source        text COLLATE "C" NOT NULL,
  sequence      bigint NOT NULL,
  PRIMARY KEY (consumer, broker_stream, source)
) WITH (fillfactor = 70);

ALTER TABLE stela.inbox_consumers
  ADD COLUMN paused smallint NOT NULL DEFAULT 0 CHECK (paused IN (0, 1));

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

ALTER TABLE stela.inbox_positions ADD COLUMN event_id bytea;
ALTER TABLE stela.inbox_positions ADD COLUMN recorded_at bigint;

INSERT INTO stela.inbox_parked (consumer, broker_stream, broker_sequence, broker_time, subject,
                                headers, payload, parked_at, attempts, error, retry)
SELECT consumer, broker_stream, broker_sequence, broker_time, subject, headers, payload, dead_at,
       attempts, error, retry
FROM stela.inbox_dead_letters ORDER BY letter;

INSERT INTO stela.inbox_readers (consumer, broker_stream, filter, position)
SELECT consumer, broker_stream, filter, settled_through FROM stela.inbox_settled;
INSERT INTO stela.inbox_readers (consumer, broker_stream, filter)
SELECT consumer, broker_stream, '' FROM stela.inbox_broker_streams
ON CONFLICT DO NOTHING;
UPDATE stela.inbox_readers AS r SET held_from =
  (SELECT min(h.broker_sequence) FROM stela.inbox_held AS h
   WHERE h.consumer = r.consumer AND h.broker_stream = r.broker_stream);

DROP TABLE stela.inbox_held;
DROP TABLE stela.inbox_failures;
DROP TABLE stela.inbox_settled;
DROP TABLE stela.inbox_broker_streams;
DROP TABLE stela.inbox_dead_letters;

DROP TRIGGER inbox_forgets ON stela.inbox_handled;
DROP FUNCTION stela.inbox_forget();
ALTER TABLE stela.inbox_consumers DROP COLUMN forgotten_through;
