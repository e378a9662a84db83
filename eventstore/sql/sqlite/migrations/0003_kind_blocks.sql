-- Shuts out older writers.
-- Which blocks of 1,024 sequences have events of a kind, so that a reader of rare kinds needn't look
-- at every event. Written once for a kind and a block, where an index would grow with each event.
CREATE TABLE kind_blocks (
  kind  INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (kind, block)
) STRICT, WITHOUT ROWID;

INSERT INTO kind_blocks (kind, block) SELECT DISTINCT kind, sequence >> 10 FROM events;
