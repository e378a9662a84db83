-- Timers of processes on PostgreSQL. Tables and columns have the names and meanings of SQLite's,
-- which docs/schema.md describes.

CREATE TABLE stela.projection_processes (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  registered_at bigint NOT NULL,
  fired         bigint NOT NULL DEFAULT 0,
  failed        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE stela.projection_timers (
  process        text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL,
  kind           text COLLATE "C" NOT NULL,
  version        bigint NOT NULL CHECK (version >= 1),
  generation     bigint NOT NULL,
  state          text COLLATE "C" NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'unknown', 'parked')),
  due_at         bigint NOT NULL,
  wake_at        bigint NOT NULL,
  attempts       bigint NOT NULL DEFAULT 0,
  error          text NOT NULL DEFAULT '',
  recurrence     text NOT NULL,
  set_at         bigint NOT NULL,
  correlation_id text NOT NULL,
  causation_id   text NOT NULL,
  metadata       text NOT NULL,
  payload        bytea NOT NULL,
  PRIMARY KEY (process, key, kind)
);
CREATE INDEX projection_timers_pending ON stela.projection_timers (process, wake_at, key, kind)
  WHERE state = 'pending';
-- Those that are tried again: whether they hold others is asked for each timer that is due.
CREATE INDEX projection_timers_retried ON stela.projection_timers (process, key, due_at, kind)
  WHERE state = 'pending' AND wake_at > due_at;
CREATE INDEX projection_timers_unknown ON stela.projection_timers (process, kind, version)
  WHERE state = 'unknown';
CREATE INDEX projection_timers_set_aside ON stela.projection_timers (process, due_at)
  WHERE state <> 'pending';

CREATE TABLE stela.projection_timer_holds (
  reason text COLLATE "C" NOT NULL PRIMARY KEY,
  since  bigint NOT NULL,
  ahead  bigint NOT NULL,
  detail text NOT NULL
);

-- Which cluster, database and schema the timers were set in. A copy has another place, and so has a
-- restored dump; a standby that is promoted has the same.
CREATE TABLE stela.projection_timer_place (
  one      boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  place    text NOT NULL,
  noted_at bigint NOT NULL
);
INSERT INTO stela.projection_timer_place (place, noted_at)
SELECT concat_ws('/', c.system_identifier, d.oid, t.relnamespace),
       extract(epoch FROM clock_timestamp()) * 1000000
FROM pg_control_system() AS c, pg_database AS d, pg_class AS t
WHERE d.datname = current_database() AND t.oid = 'stela.projection_timer_place'::regclass;

CREATE TABLE stela.projection_timer_actions (
  action bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     bigint NOT NULL,
  who    text NOT NULL,
  what   text NOT NULL,
  detail text NOT NULL
);

ALTER TABLE stela.projection_parked ADD COLUMN instance text COLLATE "C";
CREATE INDEX projection_parked_instances ON stela.projection_parked (name, build, instance)
  WHERE state <> 'skipped';

ALTER TABLE stela.projections ADD COLUMN turn bigint NOT NULL DEFAULT 0;
