-- Keys of personal fields that were destroyed, or are about to be: no event is sealed with one any
-- more. `sequence` is that of the event that says so, or 0.
CREATE TABLE stela_forgotten_keys (
  key_id       BLOB PRIMARY KEY CHECK (length(key_id) = 16),
  sequence     INTEGER NOT NULL,
  forgotten_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The key store of this store's personal fields, and the number of the newest key that an event was
-- sealed with. What is destroyed there and what is forgotten here were the same when the key store had
-- the version `settled_as`. No row: there is none.
CREATE TABLE stela_key_store (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  key_store  BLOB NOT NULL CHECK (length(key_store) = 16),
  newest_key INTEGER NOT NULL,
  settled_as INTEGER NOT NULL
) STRICT;
