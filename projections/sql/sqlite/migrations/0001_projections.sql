-- How far each projector is: everything up to `position` is in its tables.
CREATE TABLE projections (
  name     TEXT NOT NULL PRIMARY KEY,
  version  INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
