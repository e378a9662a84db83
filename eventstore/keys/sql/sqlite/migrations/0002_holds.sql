-- What is kept for a purpose until then, or until it is released: for a subject, by its binding.
CREATE TABLE holds (
  binding BLOB NOT NULL CHECK (length(binding) = 16),
  purpose TEXT NOT NULL,
  until   INTEGER,
  reason  TEXT NOT NULL,
  made_at INTEGER NOT NULL,
  PRIMARY KEY (binding, purpose)
) STRICT, WITHOUT ROWID;
