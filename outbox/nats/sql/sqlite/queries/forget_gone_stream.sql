DELETE FROM inbox_broker_streams
WHERE consumer = ?1 AND broker_stream = ?2 AND gone_since < ?3
  AND NOT EXISTS (SELECT 1 FROM inbox_held WHERE consumer = ?1 AND broker_stream = ?2)
