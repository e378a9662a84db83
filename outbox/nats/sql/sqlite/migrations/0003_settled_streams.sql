-- Up to where in a broker's stream a consumer has settled everything: one that is made again at the
-- broker continues there, as the inbox forgets in time what it has handled.
CREATE TABLE inbox_settled (
  consumer        INTEGER NOT NULL,
  broker_stream   TEXT NOT NULL,
  -- What the consumer gets of it: another choice begins again.
  filter          TEXT NOT NULL,
  begins          TEXT NOT NULL CHECK (begins IN ('first', 'now')),
  -- By the broker's clock, in nanoseconds: tells the stream from another of its name.
  stream_made_at  INTEGER NOT NULL,
  settled_through INTEGER NOT NULL,
  PRIMARY KEY (consumer, broker_stream)
) STRICT, WITHOUT ROWID;
