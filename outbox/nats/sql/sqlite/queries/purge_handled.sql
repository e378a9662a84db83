DELETE FROM inbox_handled WHERE (consumer, event_id) IN (
  SELECT consumer, event_id FROM inbox_handled
  WHERE consumer = ?1 AND handled_at < ?2 ORDER BY handled_at LIMIT ?3)
