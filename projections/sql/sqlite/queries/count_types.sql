-- ?3, ?4 and ?5: JSON arrays of categories, types and streams, or NULL.
SELECT k.type, count(*)
FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
WHERE e.sequence BETWEEN ?1 AND ?2
  AND (?3 IS NULL OR k.category IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR k.type IN (SELECT value FROM json_each(?4)))
  AND (?5 IS NULL OR e.stream IN (SELECT s.stream FROM streams AS s
                                  WHERE s.name IN (SELECT value FROM json_each(?5))))
  AND e.recorded_at BETWEEN ?6 AND ?7
GROUP BY k.type
