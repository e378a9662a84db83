-- What was handled long before the last: after a long rest nothing is forgotten at once.
DELETE FROM inbox_handled WHERE (consumer, event_id) IN (
  SELECT consumer, event_id FROM inbox_handled
  WHERE consumer = ?1
    AND handled_at < min(?2, (SELECT max(handled_at) FROM inbox_handled WHERE consumer = ?1)) - ?3
  ORDER BY handled_at LIMIT ?4)
