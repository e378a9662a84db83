SELECT 1 FROM inbox_held
WHERE consumer = ?1 AND source = ?2 AND stream = ?3 AND version = ?4 AND event_id <> ?5
