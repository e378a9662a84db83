-- ?4, ?5 and ?8: JSON arrays of categories, types and streams, or NULL.
SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, causation_id,
       published_before, metadata, checksum, payload
FROM events
WHERE sequence BETWEEN ?1 AND ?2
  AND kind IN (SELECT k.kind FROM event_kinds AS k
               WHERE (?4 IS NULL OR k.category IN (SELECT value FROM json_each(?4)))
                 AND (?5 IS NULL OR k.type IN (SELECT value FROM json_each(?5))))
  AND recorded_at BETWEEN ?6 AND ?7
  AND (?8 IS NULL OR stream IN (SELECT s.stream FROM streams AS s
                                WHERE s.name IN (SELECT value FROM json_each(?8))))
ORDER BY sequence LIMIT ?3
