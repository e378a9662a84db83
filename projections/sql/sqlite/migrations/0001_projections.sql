-- How far each projector is. docs/schema.md describes these tables as a format.

-- A build is one set of tables of a projector, called "<name>@<build>.<table>"; a reaction has none.
-- Everything up to `position` is in them. Readers address views of the plain names, which stand for
-- the living build. A `scratch` build is what a replay fills for `filter`, up to `upto`: tables of its
-- own, or those of the build `target`. The epoch rises with every change of owner, and stands with the position in
-- every update that an owner makes.
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
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  failing         INTEGER NOT NULL DEFAULT 0,
  error           TEXT NOT NULL DEFAULT '',
  halted          INTEGER NOT NULL DEFAULT 0 CHECK (halted IN (0, 1)),
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

-- Events that a projector couldn't take: put aside, wanted again, or skipped.
CREATE TABLE projection_parked (
  name      TEXT NOT NULL,
  build     INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('parked', 'retry', 'skipped')),
  parked_at INTEGER NOT NULL,
  attempts  INTEGER NOT NULL,
  error     TEXT NOT NULL,
  PRIMARY KEY (name, build, sequence)
) STRICT, WITHOUT ROWID;
