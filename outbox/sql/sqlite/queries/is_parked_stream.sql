-- Whether something of the stream that comes before ?2 is parked.
SELECT EXISTS (SELECT 1 FROM outbox_parked WHERE stream = ?1 AND sequence < ?2)
