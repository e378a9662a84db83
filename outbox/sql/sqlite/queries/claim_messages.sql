-- The rows come in any order.
UPDATE outbox_messages SET claim = ?4, claimed_until = ?5
WHERE partition = ?1 AND sequence IN
  (SELECT m.sequence FROM outbox_messages AS m
   WHERE m.partition = ?1 AND (m.claimed_until <= ?2 OR m.claimed_until > ?3) AND m.claim IS NOT ?4
   ORDER BY m.sequence LIMIT ?6)
RETURNING sequence, stream, attempts, next_attempt_at
