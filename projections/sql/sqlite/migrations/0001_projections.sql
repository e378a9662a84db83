-- How far each projector is, and the timers of processes. docs/schema.md describes these tables as
-- a format.

-- A build is one set of tables of a projector, called "<name>@<build>.<table>"; a reaction has
-- none. Everything up to `position` is in them. Readers address views of the plain names, which
-- stand for the living build. A `scratch` build is what a replay fills for `filter`, up to `upto`:
-- tables of its own, or those of the build `target`. The epoch rises with every change of owner,
-- and stands with the position in every update that an owner makes.
CREATE TABLE projections (
  name            TEXT NOT NULL,
  build           INTEGER NOT NULL CHECK (build >= 1),
  version         INTEGER NOT NULL CHECK (version >= 1),
  kind            TEXT NOT NULL CHECK (kind IN ('async', 'inline', 'reaction')),
  state           TEXT NOT NULL CHECK (state IN ('building', 'living', 'retired', 'scratch')),
  position        INTEGER NOT NULL CHECK (position >= 0),
  epoch           INTEGER NOT NULL DEFAULT 0,
  owner           TEXT,
  lease_until     INTEGER NOT NULL DEFAULT 0,
  -- How long the lease is when it is taken or renewed, and whose presence shows that its owner
  -- runs.
  lease_ttl       INTEGER NOT NULL DEFAULT 0,
  presence        INTEGER,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  failing         INTEGER NOT NULL DEFAULT 0,
  failing_since   INTEGER,
  error           TEXT NOT NULL DEFAULT '',
  halted          INTEGER NOT NULL DEFAULT 0 CHECK (halted IN (0, 1)),
  stopped_at      INTEGER,
  filter          TEXT NOT NULL DEFAULT '',
  upto            INTEGER NOT NULL DEFAULT 0,
  target          INTEGER NOT NULL DEFAULT 0,
  definitions     INTEGER NOT NULL DEFAULT 0,
  began_at        INTEGER NOT NULL,
  changed_at      INTEGER NOT NULL,
  PRIMARY KEY (name, build)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_living_build ON projections (name) WHERE state = 'living';
CREATE UNIQUE INDEX one_build_at_a_time ON projections (name) WHERE state = 'building';
CREATE UNIQUE INDEX one_replay_at_a_time ON projections (name) WHERE state = 'scratch';

-- The number of the last build of each name. None is used twice: whoever still drives a build that
-- was dropped must not take another for it.
CREATE TABLE projection_builds (
  name TEXT NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Events that a projector couldn't take: put aside, wanted again, or skipped. `instance` is the
-- instance of a process that the event belongs to; NULL if that isn't known.
CREATE TABLE projection_parked (
  name      TEXT NOT NULL,
  build     INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('parked', 'retry', 'skipped')),
  parked_at INTEGER NOT NULL,
  attempts  INTEGER NOT NULL,
  error     TEXT NOT NULL,
  instance  TEXT,
  PRIMARY KEY (name, build, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX projection_parked_instances ON projection_parked (name, build, instance)
  WHERE state <> 'skipped';

-- A reaction that has a row here is a process: it sets timers. Its position and its lease are in
-- the table `projections`, where its kind is `reaction`. `fired` and `failed` count since it was
-- registered.
CREATE TABLE projection_processes (
  name          TEXT NOT NULL PRIMARY KEY,
  registered_at INTEGER NOT NULL,
  fired         INTEGER NOT NULL DEFAULT 0,
  failed        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One timer of a kind for an instance, which `key` names. The generation is another one whenever
-- the timer is set, moved or set again by its recurrence. `wake_at` is when to fire it: when it is
-- due, or when it is tried again. `recurrence` is empty for a timer that fires once. The context is
-- that of the event that set it.
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
CREATE INDEX projection_timers_pending ON projection_timers (process, wake_at)
  WHERE state = 'pending';
-- Those that are tried again.
CREATE INDEX projection_timers_retried ON projection_timers (process, key, due_at, kind)
  WHERE state = 'pending' AND wake_at > due_at;
CREATE INDEX projection_timers_unknown ON projection_timers (process, kind, version)
  WHERE state = 'unknown';
CREATE INDEX projection_timers_set_aside ON projection_timers (process, due_at)
  WHERE state <> 'pending';

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
