SELECT coalesce(length(e.payload), 0)
FROM outbox_messages AS m LEFT JOIN events AS e ON e.sequence = m.sequence
WHERE m.partition = ?1 AND (m.claimed_until <= ?2 OR m.claimed_until > ?3) AND m.claim IS NOT ?4
ORDER BY m.sequence LIMIT ?5
