-- Unhandled messages: the table inbox_parked.

-- name: park_message
-- takes: consumer int, broker_stream text, broker_sequence int, broker_time int, source text?,
--        stream text?, version int?, subject text, headers text, payload blob, parked_at time,
--        attempts int, error text
INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, source, stream,
                          version, subject, headers, payload, parked_at, attempts, error, retry)
VALUES (:consumer, :broker_stream, :broker_sequence, :broker_time, :source, :stream, :version,
        :subject, :headers, :payload, :parked_at, :attempts, :error,
        CASE WHEN EXISTS (SELECT 1 FROM inbox_parked AS p
                          WHERE p.consumer = :consumer AND p.source = :source
                            AND p.stream = :stream AND p.retry = 1) THEN 1 ELSE 0 END)
ON CONFLICT DO NOTHING;

-- name: count_parked_bytes
-- takes: consumer int
-- gives: bytes int
SELECT coalesce(sum(length(payload) + length(headers)), 0) AS bytes
FROM inbox_parked WHERE consumer = :consumer;

-- row: parked_message
-- gives: parked int, consumer text, broker_stream text, broker_sequence int, subject text,
--        headers text, payload blob, parked_at time, attempts int, error text, retry bool

-- name: list_parked
-- All consumers if `consumer` is empty.
-- takes: consumer text, after int, most int
-- gives: parked_message
SELECT p.parked, c.name AS consumer, p.broker_stream, p.broker_sequence, p.subject, p.headers,
       p.payload, p.parked_at, p.attempts, p.error, p.retry
FROM inbox_parked AS p JOIN inbox_consumers AS c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) AND p.parked > :after
ORDER BY p.parked LIMIT :most;

-- name: list_parked_back
-- takes: consumer text, before int, most int
-- gives: parked_message
SELECT p.parked, c.name AS consumer, p.broker_stream, p.broker_sequence, p.subject, p.headers,
       p.payload, p.parked_at, p.attempts, p.error, p.retry
FROM inbox_parked AS p JOIN inbox_consumers AS c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) AND p.parked < :before
ORDER BY p.parked DESC LIMIT :most;

-- name: find_parked
-- With the first parked message of its stream, which the others wait for.
-- takes: parked int
-- gives: consumer int, name text, source text?, stream text?, first int?
SELECT p.consumer, c.name, p.source, p.stream,
       (SELECT q.parked FROM inbox_parked AS q
        WHERE q.consumer = p.consumer AND q.source = p.source AND q.stream = p.stream
        ORDER BY q.version LIMIT 1) AS first
FROM inbox_parked AS p JOIN inbox_consumers AS c USING (consumer) WHERE p.parked = :parked;

-- name: retry_parked
-- takes: parked int
UPDATE inbox_parked SET retry = 1 WHERE parked = :parked;

-- name: retry_parked_stream
-- takes: consumer int, source text, stream text, retry bool
UPDATE inbox_parked SET retry = CASE WHEN :retry THEN 1 ELSE 0 END
WHERE consumer = :consumer AND source = :source AND stream = :stream;

-- name: next_to_retry
-- The first parked message of its stream. Also from another stream of the broker that nobody reads.
-- takes: consumer int, broker_stream text, now time, after int
-- gives: parked int, source text?, stream text?, headers text, payload blob, attempts int
SELECT p.parked, p.source, p.stream, p.headers, p.payload, p.attempts
FROM inbox_parked AS p
WHERE p.consumer = :consumer AND p.retry = 1 AND p.parked > :after
  AND (p.broker_stream = :broker_stream
       OR NOT EXISTS (SELECT 1 FROM inbox_readers AS r
                      WHERE r.consumer = p.consumer AND r.broker_stream = p.broker_stream
                        AND r.owner IS NOT NULL AND r.lease_until > :now))
  AND NOT EXISTS (SELECT 1 FROM inbox_parked AS q
                  WHERE q.consumer = p.consumer AND q.source = p.source AND q.stream = p.stream
                    AND q.version < p.version)
ORDER BY p.parked LIMIT 1;

-- name: take_parked
-- Counts the attempt in advance.
-- takes: parked int, error text
UPDATE inbox_parked SET retry = 0, attempts = attempts + 1, error = :error
WHERE parked = :parked AND retry = 1;

-- name: leave_parked
-- Leaves the retry to another process.
-- takes: parked int, error text
UPDATE inbox_parked SET retry = 1, attempts = attempts - 1, error = :error WHERE parked = :parked;

-- name: explain_parked
-- takes: parked int, error text
UPDATE inbox_parked SET error = :error WHERE parked = :parked;

-- name: delete_parked
-- takes: parked int
DELETE FROM inbox_parked WHERE parked = :parked;

-- name: count_parked
-- takes: consumer text
-- gives: messages int, streams int, bytes int, since time?
SELECT count(*) AS messages,
       (SELECT count(*) FROM (SELECT DISTINCT q.source, q.stream FROM inbox_parked AS q
                              WHERE q.consumer = (SELECT i.consumer FROM inbox_consumers AS i
                                                  WHERE i.name = :consumer)
                                AND q.stream IS NOT NULL) AS d) AS streams,
       coalesce(sum(length(p.payload) + length(p.headers)), 0) AS bytes, min(p.parked_at) AS since
FROM inbox_parked AS p JOIN inbox_consumers AS c USING (consumer) WHERE c.name = :consumer;
