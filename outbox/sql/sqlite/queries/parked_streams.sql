-- The streams that have parked messages, one after the other.
SELECT stream FROM outbox_parked WHERE stream > ?1 ORDER BY stream LIMIT 1
