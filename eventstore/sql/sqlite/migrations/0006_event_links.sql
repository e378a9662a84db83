-- Which events carry an id as their correlation or as their cause, by a key of that id; also events
-- whose own id isn't one of their time. Two ids may have one key: the event says which it is.
CREATE TABLE event_links (
  link     INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (link, sequence)
) STRICT, WITHOUT ROWID;

-- The events up to this one have their links.
CREATE TABLE event_links_through (
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  sequence INTEGER NOT NULL CHECK (sequence >= 0)
) STRICT;

INSERT INTO event_links_through (only, sequence) VALUES (1, 0);
