-- The index of streams and versions as it stands, and the rows that it points to. The order is that
-- of the index: an ORDER BY out here would hide what is wrong with it.
SELECT i.stream, i.version, i.sequence, e.stream, e.version, e.kind, e.published_before
FROM (SELECT x.stream, x.version, x.sequence
      FROM events AS x INDEXED BY sqlite_autoindex_events_1
      WHERE (x.stream, x.version) > (?1, ?2)
      ORDER BY x.stream, x.version LIMIT ?3) AS i
     LEFT JOIN events AS e NOT INDEXED ON e.sequence = i.sequence
