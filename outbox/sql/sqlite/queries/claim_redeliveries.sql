-- The rows come in any order.
UPDATE outbox_redeliveries SET claim = ?4, claimed_until = ?5
WHERE redelivery IN
  (SELECT r.redelivery FROM outbox_redeliveries AS r
   WHERE r.partition = ?1 AND (r.claimed_until <= ?2 OR r.claimed_until > ?3) AND r.claim IS NOT ?4
   ORDER BY r.redelivery LIMIT ?6)
RETURNING sequence, stream, attempts, redelivery, kind, was_lost
