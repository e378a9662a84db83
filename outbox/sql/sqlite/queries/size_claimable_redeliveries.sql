SELECT coalesce(length(e.payload), 0)
FROM outbox_redeliveries AS r LEFT JOIN events AS e ON e.sequence = r.sequence
WHERE r.partition = ?1 AND (r.claimed_until <= ?2 OR r.claimed_until > ?3) AND r.claim IS NOT ?4
ORDER BY r.redelivery LIMIT ?5
