-- What is still missing of a gap before one of its messages, if anything.
INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at)
SELECT consumer, source, stream, after, ?4, CASE WHEN missing IS NULL THEN NULL ELSE ?5 END, seen_at
FROM inbox_gaps
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND after < ?5 AND ?4 < before
