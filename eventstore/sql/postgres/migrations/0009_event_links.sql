-- Which events carry an id as their correlation or as their cause, by a key of that id; also events
-- whose own id isn't one of their time. Two ids may have one key: the event says which it is.
CREATE TABLE stela.event_links (
  link     bigint NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (link, sequence)
);

-- The events up to this one have their links.
CREATE TABLE stela.event_links_through (
  one      boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  sequence bigint NOT NULL CHECK (sequence >= 0)
);
INSERT INTO stela.event_links_through (sequence) VALUES (0);
