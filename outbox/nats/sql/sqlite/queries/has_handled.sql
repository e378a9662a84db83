SELECT 1 FROM inbox_handled WHERE consumer = ?1 AND event_id = ?2
