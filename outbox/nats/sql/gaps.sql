-- Missing messages: the table inbox_gaps.

-- name: find_gap
-- takes: consumer int, source text, stream text, version int
-- gives: found int
SELECT 1 AS found FROM inbox_gaps
WHERE consumer = :consumer AND source = :source AND stream = :stream
  AND after < :version AND :version < before;

-- name: insert_gap
-- takes: consumer int, source text, stream text, after int, before int, missing int?, seen_at time
INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at)
VALUES (:consumer, :source, :stream, :after, :before, :missing, :seen_at);

-- name: split_gap_before
-- Keeps the part of a gap that is still missing before one of its messages, if there is one.
-- takes: consumer int, source text, stream text, version int, previous int
INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at)
SELECT consumer, source, stream, after, :version,
       CASE WHEN missing IS NULL THEN NULL ELSE :previous END, seen_at
FROM inbox_gaps
WHERE consumer = :consumer AND source = :source AND stream = :stream
  AND after < :previous AND :version < before;

-- name: split_gap_after
-- takes: consumer int, source text, stream text, version int
UPDATE inbox_gaps SET after = :version
WHERE consumer = :consumer AND source = :source AND stream = :stream
  AND after < :version AND :version < before;

-- name: delete_full_gaps
-- Gaps whose last message, the one before version `before`, has arrived.
-- takes: consumer int, source text, stream text
DELETE FROM inbox_gaps
WHERE consumer = :consumer AND source = :source AND stream = :stream
  AND (missing <= after OR after + 1 >= before);

-- row: listed_gap
-- gives: gap int, consumer text, source text, stream text, after int, missing int, seen_at time

-- name: list_gaps
-- All consumers if `consumer` is empty.
-- takes: consumer text, after int, most int
-- gives: listed_gap
SELECT g.gap, c.name AS consumer, g.source, g.stream, g.after, g.missing, g.seen_at
FROM inbox_gaps g JOIN inbox_consumers c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) AND g.missing IS NOT NULL AND g.gap > :after
ORDER BY g.gap LIMIT :most;

-- name: list_gaps_back
-- takes: consumer text, before int, most int
-- gives: listed_gap
SELECT g.gap, c.name AS consumer, g.source, g.stream, g.after, g.missing, g.seen_at
FROM inbox_gaps g JOIN inbox_consumers c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) AND g.missing IS NOT NULL AND g.gap < :before
ORDER BY g.gap DESC LIMIT :most;
