SELECT m.sequence, m.stream, m.attempts, m.next_attempt_at
FROM outbox_messages AS m
WHERE m.partition = ?1 AND m.sequence > ?2 AND m.sequence < ?3
ORDER BY m.sequence LIMIT ?4
