-- Messages that were given up: the table inbox_dead_letters.

-- name: insert_dead_letter
-- takes: consumer int, broker_stream text, broker_sequence int, broker_time int, subject text,
--        headers text, payload blob, dead_at time, attempts int, error text
INSERT INTO inbox_dead_letters (consumer, broker_stream, broker_sequence, broker_time, subject,
                                headers, payload, dead_at, attempts, error)
VALUES (:consumer, :broker_stream, :broker_sequence, :broker_time, :subject, :headers, :payload,
        :dead_at, :attempts, :error)
ON CONFLICT DO NOTHING;

-- name: list_dead_letters
-- Of all consumers if `consumer` is empty.
-- takes: consumer text, after int, most int
-- gives: letter int, consumer text, broker_stream text, broker_sequence int, subject text,
--        headers text, payload blob, dead_at time, attempts int, error text, retry bool
SELECT d.letter AS letter, c.name AS consumer, d.broker_stream AS broker_stream,
       d.broker_sequence AS broker_sequence, d.subject AS subject, d.headers AS headers,
       d.payload AS payload, d.dead_at AS dead_at, d.attempts AS attempts, d.error AS error,
       d.retry AS retry
FROM inbox_dead_letters d JOIN inbox_consumers c USING (consumer)
WHERE (:consumer = '' OR c.name = :consumer) AND d.letter > :after
ORDER BY d.letter LIMIT :most;

-- name: retry_dead_letter
-- takes: letter int
UPDATE inbox_dead_letters SET retry = 1 WHERE letter = :letter;

-- name: next_to_retry
-- takes: consumer int, after int
-- gives: letter int, broker_stream text, headers text, payload blob, attempts int
SELECT letter, broker_stream, headers, payload, attempts
FROM inbox_dead_letters WHERE consumer = :consumer AND retry = 1 AND letter > :after
ORDER BY letter LIMIT 1;

-- name: take_dead_letter
-- takes: letter int, error text
UPDATE inbox_dead_letters SET retry = 0, attempts = attempts + 1, error = :error
WHERE letter = :letter AND retry = 1;

-- name: leave_dead_letter
-- Still to be tried again, by another process.
-- takes: letter int, error text
UPDATE inbox_dead_letters SET retry = 1, attempts = attempts - 1, error = :error
WHERE letter = :letter;

-- name: explain_dead_letter
-- takes: letter int, error text
UPDATE inbox_dead_letters SET error = :error WHERE letter = :letter;

-- name: delete_dead_letter
-- takes: letter int
DELETE FROM inbox_dead_letters WHERE letter = :letter;
