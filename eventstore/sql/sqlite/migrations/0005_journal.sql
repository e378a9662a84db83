-- What operators see: what changed when, what is known already, and how things went.

-- Changes of state, and what operators did where a module has no log of its own. Bounded: old rows go.
CREATE TABLE stela_changes (
  change  INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  part    TEXT NOT NULL,
  subject TEXT NOT NULL,
  what    TEXT NOT NULL,
  who     TEXT NOT NULL,
  detail  TEXT NOT NULL
) STRICT;

-- Findings that an operator knows of, until when, and how bad they were then.
CREATE TABLE stela_acknowledged (
  code     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  severity TEXT NOT NULL,
  amount   INTEGER NOT NULL,
  who      TEXT NOT NULL,
  why      TEXT NOT NULL,
  at       INTEGER NOT NULL,
  until    INTEGER NOT NULL,
  PRIMARY KEY (code, subject)
) STRICT, WITHOUT ROWID;

-- A value a minute of each series for a week, and a value an hour for a quarter of a year. `minute`
-- counts from 1970. A missing row is a gap, and not zero.
CREATE TABLE stela_series (
  series INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE stela_samples (
  series INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  value  INTEGER NOT NULL,
  PRIMARY KEY (series, minute)
) STRICT, WITHOUT ROWID;
