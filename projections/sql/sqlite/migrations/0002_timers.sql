-- Timers of processes. docs/schema.md describes these tables as a format.

-- A reaction that has a row here is a process: it sets timers. Its position and its lease are in the
-- table `projections`, where its kind is `reaction`. `fired` and `failed` count since it was registered.
CREATE TABLE projection_processes (
  name          TEXT NOT NULL PRIMARY KEY,
  registered_at INTEGER NOT NULL,
  fired         INTEGER NOT NULL DEFAULT 0,
  failed        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One timer of a kind for an instance, which `key` names. The generation is another one whenever the
-- timer is set, moved or set again by its recurrence. `wake_at` is when to fire it: when it is due, or when
-- it is tried again. `recurrence` is empty for a timer that fires once. The context is that of the event
-- that set it.
CREATE TABLE projection_timers (
  process        TEXT NOT NULL,
  key            TEXT NOT NULL,
  kind           TEXT NOT NULL,
  version        INTEGER NOT NULL CHECK (version >= 1),
  generation     INTEGER NOT NULL,
  state          TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'unknown', 'parked')),
  due_at         INTEGER NOT NULL,
  wake_at        INTEGER NOT NULL,
  attempts       INTEGER NOT NULL DEFAULT 0,
  error          TEXT NOT NULL DEFAULT '',
  recurrence     TEXT NOT NULL,
  set_at         INTEGER NOT NULL,
  correlation_id TEXT NOT NULL,
  causation_id   TEXT NOT NULL,
  metadata       TEXT NOT NULL,
  payload        BLOB NOT NULL,
  PRIMARY KEY (process, key, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX projection_timers_pending ON projection_timers (process, wake_at) WHERE state = 'pending';
-- Those that are tried again.
CREATE INDEX projection_timers_retried ON projection_timers (process, key, due_at, kind)
  WHERE state = 'pending' AND wake_at > due_at;
CREATE INDEX projection_timers_unknown ON projection_timers (process, kind, version)
  WHERE state = 'unknown';
CREATE INDEX projection_timers_set_aside ON projection_timers (process, due_at) WHERE state <> 'pending';

-- Why no timer fires: `clock`, `operator` or `imported`. By `ahead` a clock jumped forward.
CREATE TABLE projection_timer_holds (
  reason TEXT NOT NULL PRIMARY KEY,
  since  INTEGER NOT NULL,
  ahead  INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What operators did to timers.
CREATE TABLE projection_timer_actions (
  action INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

-- The instance of a process that a parked event belongs to; NULL if that isn't known.
ALTER TABLE projection_parked ADD COLUMN instance TEXT;
CREATE INDEX projection_parked_instances ON projection_parked (name, build, instance)
  WHERE state <> 'skipped';

-- A runner of 0.1.0 that drives a reaction must not go on with the process that it became: it would set
-- no timers. It loses its lease when the process is registered, and isn't given another one.
ALTER TABLE projections ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER projection_processes_need_timers BEFORE UPDATE OF owner ON projections
  WHEN NEW.owner IS NOT NULL AND NEW.turn = OLD.turn
    AND EXISTS (SELECT 1 FROM projection_processes AS p WHERE p.name = NEW.name)
  BEGIN SELECT RAISE(ABORT, 'a newer Stela made this reaction a process; restart with it'); END;
