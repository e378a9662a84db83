-- "STLK": so that no store of events takes this file for its own.
PRAGMA application_id = 1398033483;

CREATE TABLE key_store (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  id       BLOB NOT NULL CHECK (length(id) = 16),
  -- What bindings and the codes of erasures are made with, wrapped by a key-encryption key.
  root     BLOB NOT NULL,
  kek      INTEGER NOT NULL,
  -- Changes when keys are destroyed, and when a rotation ends.
  version  INTEGER NOT NULL,
  -- The number of the last record of this key store in the file of erasures.
  erasures INTEGER NOT NULL,
  made_at  INTEGER NOT NULL
) STRICT;

-- Several only during a rotation.
CREATE TABLE key_encryption_keys (
  number  INTEGER PRIMARY KEY,
  wrapped BLOB NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

-- The rotations that left nothing of former keys. A restored key store lacks those since its backup.
CREATE TABLE key_rotations (
  number   INTEGER PRIMARY KEY,
  began_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL
) STRICT;

-- A destroyed key leaves its row, without the subject's name and without the key.
CREATE TABLE subject_keys (
  number       INTEGER PRIMARY KEY,
  id           BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  binding      BLOB NOT NULL CHECK (length(binding) = 16),
  purpose      TEXT NOT NULL,
  generation   INTEGER NOT NULL CHECK (generation > 0),
  -- The subject's name, sealed by the key.
  subject      BLOB,
  kek          INTEGER,
  wrapped      BLOB,
  made_at      INTEGER NOT NULL,
  destroyed_at INTEGER,
  -- The newest key-encryption key then: no clock says which rotations came later.
  destroyed_by INTEGER,
  allowed_at   INTEGER,
  UNIQUE (binding, purpose, generation),
  CHECK ((subject IS NULL) = (destroyed_at IS NOT NULL)),
  CHECK ((destroyed_by IS NULL) = (destroyed_at IS NULL)),
  CHECK ((kek IS NULL) = (subject IS NULL) AND (wrapped IS NULL) = (subject IS NULL)),
  CHECK (allowed_at IS NULL OR destroyed_at IS NOT NULL)
) STRICT;

-- What is kept for a purpose until then, or until it is released: for a subject, by its binding.
CREATE TABLE holds (
  binding BLOB NOT NULL CHECK (length(binding) = 16),
  purpose TEXT NOT NULL,
  until   INTEGER,
  reason  TEXT NOT NULL,
  made_at INTEGER NOT NULL,
  PRIMARY KEY (binding, purpose)
) STRICT, WITHOUT ROWID;
