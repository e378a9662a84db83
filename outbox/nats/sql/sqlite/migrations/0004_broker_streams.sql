-- The streams at the broker that a consumer of all events reads: after a resize, what comes before a
-- message of one may still be in another.
CREATE TABLE inbox_broker_streams (
  consumer      INTEGER NOT NULL,
  broker_stream TEXT NOT NULL,
  PRIMARY KEY (consumer, broker_stream)
) STRICT, WITHOUT ROWID;
