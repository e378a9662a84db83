INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
