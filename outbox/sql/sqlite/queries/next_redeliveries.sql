SELECT r.redelivery, r.sequence, r.stream, r.attempts, r.kind,
       EXISTS (SELECT 1 FROM outbox_parked AS k WHERE k.stream = r.stream AND k.sequence < r.sequence),
       r.was_lost
FROM outbox_redeliveries AS r
WHERE r.partition = ?1 AND r.redelivery > ?2
ORDER BY r.redelivery LIMIT ?3
