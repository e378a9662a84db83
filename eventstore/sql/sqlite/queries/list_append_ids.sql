-- Behind ?1, with the time of their use; of one from before that was noted, the time of its events.
SELECT a.append_id, a.used_at, coalesce(a.used_at, e.recorded_at)
FROM append_ids AS a LEFT JOIN events AS e ON e.sequence = a.first_sequence
WHERE a.append_id > ?1
ORDER BY a.append_id LIMIT ?2
