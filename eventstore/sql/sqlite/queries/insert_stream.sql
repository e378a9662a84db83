INSERT INTO streams (stream, name) VALUES ((SELECT coalesce(max(stream), 0) + 1 FROM streams), ?1)
