-- ?1 and ?2: JSON arrays of categories and types, or NULL.
SELECT kind FROM event_kinds
WHERE (?1 IS NULL OR category IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR type IN (SELECT value FROM json_each(?2)))
