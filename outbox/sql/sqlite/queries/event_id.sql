SELECT event_id FROM events WHERE sequence = ?1
